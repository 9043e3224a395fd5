// A brain's names and texts under a prefix. Everything that is not known to name a region is copied
// as it is, so that a brain comes back with the bytes that it had. Metadata come from files: what
// an ensemble needs of them is checked before it is used, all else may be anything.
#include "state/brain/ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "state/brain/stored_region.h"
#include "thalia/error.h"
#include "thalia/state/metadata.h"

namespace thalia {
namespace state {
namespace {

constexpr std::string_view kEnsemble = "thalia_ensemble";
constexpr std::uint64_t kEnsembleVersion = 1;
constexpr std::string_view kBrainsHistory = "growth_history";

const std::string* text_in(const Value& object, std::string_view member) {
  const Value* found = object.find(member);
  return found != nullptr && found->kind() == Value::Kind::string ? &found->as_string() : nullptr;
}

// The region that an event is of, by the member that counts; nullptr if it names none.
const std::string* region_of_event(const Value& event) {
  if (const std::string* region = text_in(event, "region")) return region;
  return text_in(event, "component_name");
}

template <typename Rename>
void rename_event(Value& event, const Rename& rename) {
  for (const std::string_view member : {"region", "component_name"}) {
    if (const std::string* name = text_in(event, member)) event[member] = Value(rename(*name));
  }
}

[[noreturn]] void refuse_ensemble(std::string found, std::string bound) {
  throw FormatError(ErrorCode::bad_value, {},
                    {.section = "metadata",
                     .field = std::string(kEnsemble),
                     .value = std::move(found),
                     .bound = std::move(bound)});
}

std::optional<std::uint64_t> whole_number(const Value* value) {
  if (value == nullptr || value->kind() != Value::Kind::number) return std::nullopt;
  try {
    return value->as_uint64();
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

// The objects that describe the brains; empty where the metadata are no ensemble's.
const std::vector<Value>& brains_of(const Value& metadata) {
  static const std::vector<Value> none;
  const Value* ensemble = metadata.find(kEnsemble);
  if (ensemble == nullptr) return none;
  if (!ensemble->is_object())
    refuse_ensemble(std::string(kind_name(ensemble->kind())), "an object");
  const Value* version = ensemble->find("version");
  if (whole_number(version) != kEnsembleVersion) {
    throw UnsupportedError(ErrorCode::unsupported_version, {},
                           {.section = "metadata",
                            .field = fmt::format("{}.version", kEnsemble),
                            .value = version == nullptr ? "none" : printable(to_json(*version)),
                            .bound = std::to_string(kEnsembleVersion)});
  }
  const Value* brains = ensemble->find("brains");
  if (brains == nullptr || !brains->is_array()) refuse_ensemble("no brains", "an array of them");
  std::vector<std::string> prefixes;
  for (const Value& brain : brains->elements()) {
    const std::string* prefix = text_in(brain, "prefix");
    const Value* own = brain.find("metadata");
    if (prefix == nullptr || own == nullptr || !own->is_object() ||
        !whole_number(brain.find("training_steps"))) {
      refuse_ensemble(fmt::format("brain {}", prefixes.size()),
                      "prefix, metadata and training_steps of each");
    }
    prefixes.push_back(*prefix);
  }
  try {
    check_prefixes(prefixes);
  } catch (const UsageError& error) {
    refuse_ensemble(error.context().value, error.context().bound);
  }
  return brains->elements();
}

}  // namespace

void check_prefixes(const std::vector<std::string>& prefixes) {
  std::vector<std::string_view> sorted(prefixes.begin(), prefixes.end());
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].empty() || !is_valid_utf8(sorted[i])) {
      fail_argument(ErrorCode::bad_argument, "prefix", fmt::format("'{}'", printable(sorted[i])),
                    "1 or more bytes of UTF-8");
    }
    if (sorted[i].starts_with(kPathwayPrefix) || sorted[i].starts_with(kBrainRegion)) {
      fail_argument(
          ErrorCode::bad_argument, "prefix", fmt::format("'{}'", printable(sorted[i])),
          fmt::format("one that begins with neither {} nor {}", kPathwayPrefix, kBrainRegion));
    }
    // Texts that begin with this one come right after it, as they are sorted.
    if (i + 1 < sorted.size() && sorted[i + 1].starts_with(sorted[i])) {
      fail_argument(ErrorCode::duplicate, "prefix",
                    fmt::format("'{}' and '{}'", printable(sorted[i]), printable(sorted[i + 1])),
                    "prefixes of which none begins with another");
    }
  }
}

std::string name_in_ensemble(std::string_view prefix, std::string_view name) {
  if (name.starts_with(kPathwayPrefix)) {
    name.remove_prefix(kPathwayPrefix.size());
    return fmt::format("{}{}{}", kPathwayPrefix, prefix, name);
  }
  std::string made = fmt::format("{}{}", prefix, name);
  if (made == kBrainRegion || made.starts_with(kPathwayPrefix)) {
    fail_argument(
        ErrorCode::bad_argument, "prefix", fmt::format("'{}'", printable(prefix)),
        fmt::format("one that does not make '{}' of '{}'", printable(made), printable(name)));
  }
  return made;
}

std::optional<std::string> name_in_brain(std::string_view prefix, std::string_view name) {
  const bool is_pathway = name.starts_with(kPathwayPrefix);
  if (is_pathway) name.remove_prefix(kPathwayPrefix.size());
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  return (is_pathway ? std::string(kPathwayPrefix) : std::string()) + std::string(name);
}

std::vector<Value> take_connections(Value& metadata, std::size_t count) {
  std::vector<Value> taken;
  Value* list = metadata.find(kConnectionsMember);
  if (list == nullptr) return taken;
  if (list->is_array() && list->size() == count) taken = std::move(list->elements());
  metadata.erase(kConnectionsMember);
  return taken;
}

bool tells(const std::vector<Value>& connections) {
  return std::ranges::any_of(connections, [](const Value& one) { return one.size() != 0; });
}

void put_connections(Value& metadata, std::vector<Value> connections) {
  if (!tells(connections)) return;
  Value list = Value::array();
  list.elements() = std::move(connections);
  metadata.erase(kConnectionsMember);
  metadata.add(std::string(kConnectionsMember), std::move(list));
}

EnsembleMetadata::EnsembleMetadata(Value own) : own_(std::move(own)) {
  own_.erase(kEnsemble);
  const Value* history = own_.find(kBrainsHistory);
  if (history == nullptr || history->is_null()) return;
  if (!history->is_array()) {
    fail_argument(ErrorCode::bad_argument, kBrainsHistory, std::string(kind_name(history->kind())),
                  "an array");
  }
  history_ = *history;
}

void EnsembleMetadata::add(EnsembleBrain brain) {
  Value* history = brain.metadata.find(kBrainsHistory);
  if (history != nullptr && history->is_array()) {
    Value kept = Value::array();
    for (Value& event : history->elements()) {
      if (region_of_event(event) == nullptr) {
        kept.push_back(std::move(event));
        continue;
      }
      rename_event(event,
                   [&](const std::string& name) { return name_in_ensemble(brain.prefix, name); });
      history_.push_back(std::move(event));
    }
    *history = std::move(kept);
  }
  Value told = Value::object();
  told.add("prefix", std::move(brain.prefix));
  told.add("training_steps", brain.training_steps);
  told.add("metadata", std::move(brain.metadata));
  brains_.push_back(std::move(told));
}

Value EnsembleMetadata::take() {
  own_[kBrainsHistory] = std::move(history_);
  Value ensemble = Value::object();
  ensemble.add("version", kEnsembleVersion);
  ensemble.add("brains", std::move(brains_));
  own_.add(std::string(kEnsemble), std::move(ensemble));
  return std::move(own_);
}

EnsembleBrain brain_in_ensemble(const Value& metadata, std::string_view prefix) {
  const std::vector<Value>& brains = brains_of(metadata);
  if (metadata.find(kEnsemble) == nullptr) {
    throw UsageError(ErrorCode::wrong_state, "no ensemble: the file has one brain",
                     {.section = "metadata", .field = std::string(kEnsemble)});
  }
  const auto of = [](const Value& brain) -> const std::string& {
    return brain.at("prefix").as_string();
  };
  const auto found = std::ranges::find(brains, prefix, of);
  if (found == brains.end()) {
    throw UsageError(ErrorCode::not_found,
                     "no brain with this prefix" + suggestion_among(prefix, brains, of),
                     {.field = "prefix", .value = fmt::format("'{}'", printable(prefix))});
  }
  EnsembleBrain brain{.prefix = std::string(prefix),
                      .training_steps = found->at("training_steps").as_uint64(),
                      .metadata = found->at("metadata")};
  const Value* history = metadata.find(kBrainsHistory);
  if (history == nullptr || !history->is_array()) return brain;
  std::vector<Value> events;
  for (const Value& event : history->elements()) {
    const std::string* region = region_of_event(event);
    if (region == nullptr || !name_in_brain(prefix, *region)) continue;
    rename_event(events.emplace_back(event), [&](const std::string& name) {
      return name_in_brain(prefix, name).value_or(name);
    });
  }
  if (events.empty()) return brain;
  Value& own = brain.metadata[kBrainsHistory];
  if (own.is_null()) own = Value::array();
  if (!own.is_array()) {
    throw FormatError(ErrorCode::bad_value, {},
                      {.section = "metadata",
                       .field = std::string(kBrainsHistory),
                       .value = std::string(kind_name(own.kind())),
                       .bound = "an array"});
  }
  for (Value& event : events) own.push_back(std::move(event));
  return brain;
}

}  // namespace state

std::vector<std::string> ensemble_prefixes(const Value& metadata) {
  std::vector<std::string> prefixes;
  for (const Value& brain : state::brains_of(metadata))
    prefixes.push_back(brain.at("prefix").as_string());
  return prefixes;
}

}  // namespace thalia
