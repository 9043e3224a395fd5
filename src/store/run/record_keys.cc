#include "store/run/record_keys.h"

#include <fmt/format.h>

#include "store/run/python_tree.h"
#include "thalia/error.h"

namespace thalia::store {

void RecordKeys::add_path(std::string_view name) {
  add(name);
  const std::size_t end = name.find_first_of("./");
  if (end != std::string_view::npos) add(name.substr(0, end));
}

void RecordKeys::add_metadata(const Value& metadata) {
  if (!metadata.is_object()) return;
  for (const Value::Member& member : metadata.members()) add(member.name);
  if (const Value* const tree = python_tree(metadata))
    for_each_key(*tree, [&](const std::string& key, const Value&) { add(key); });
}

void RecordKeys::add_metadata_text(std::string_view json) {
  if (!json.empty()) add_metadata(parse_json(json));
}

void RecordKeys::require(const RunConfig& config, const PhaseConfig& phase) const {
  std::string missing;
  for (const auto* const keys : {&config.required_keys, &phase.required_keys})
    for (const std::string& key : *keys)
      if (!keys_.contains(key)) missing += (missing.empty() ? "" : ", ") + key;
  if (missing.empty()) return;
  throw UsageError(ErrorCode::not_found,
                   fmt::format("the record of {} lacks required keys: {}", phase.name, missing),
                   {.field = "required_keys"});
}

}  // namespace thalia::store
