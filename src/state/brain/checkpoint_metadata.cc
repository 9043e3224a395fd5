// The members of the metadata that have a schema, as a struct: docs/format/states.md, "Metadata".
// No member is lost on the way there and back: what the schema does not know, or knows with another
// kind of value, stays in `other` as it was.

#include "thalia/state/metadata.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"

namespace thalia {
namespace {

bool is_text(const Value& value) {
  return value.kind() == Value::Kind::string;
}

bool take_text(const Value& value, std::string& text) {
  if (!is_text(value)) return false;
  text = value.as_string();
  return true;
}

bool take_object(const Value& value, Value& object) {
  if (!value.is_object()) return false;
  object = value;
  return true;
}

bool take_tags(const Value& value, std::vector<std::string>& tags) {
  if (!value.is_array() || !std::ranges::all_of(value.elements(), is_text)) return false;
  for (const Value& tag : value.elements()) tags.push_back(tag.as_string());
  return true;
}

bool take_history(const Value& value, std::vector<GrowthEvent>& events) {
  if (!value.is_array()) return false;
  // The reader of histories takes a whole metadata text.
  Value only = Value::object();
  only.add("growth_history", value);
  events = parse_growth_history(to_json(only));
  return true;
}

// False if the schema does not know the member, or not with such a value.
bool take(const Value::Member& member, CheckpointMetadata& metadata) {
  const auto& [name, value] = member;
  if (name == "version") return take_text(value, metadata.version);
  if (name == "thalia_version") return take_text(value, metadata.thalia_version);
  if (name == "created") return take_text(value, metadata.created);
  if (name == "description") return take_text(value, metadata.description);
  if (name == "tags") return take_tags(value, metadata.tags);
  if (name == "growth_history") return take_history(value, metadata.growth_history);
  if (name == "training_info") return take_object(value, metadata.training_info);
  if (name == "hardware") return take_object(value, metadata.hardware);
  if (name == "custom") return take_object(value, metadata.custom);
  return false;
}

}  // namespace

CheckpointMetadata checkpoint_metadata(const Value& metadata) {
  CheckpointMetadata read;
  if (!metadata.is_object()) return read;
  for (const Value::Member& member : metadata.members()) {
    if (!take(member, read)) read.other.add(member.name, member.value);
  }
  return read;
}

Value to_value(const CheckpointMetadata& metadata) {
  Value value = Value::object();
  // A member of the schema whose value has another kind was put among the others. It stays there,
  // unless the struct has something to say under the same name: then the two contradict each other.
  const auto add = [&](const char* name, Value of_name, bool says_nothing) {
    if (metadata.other.find(name) == nullptr) {
      value.add(name, std::move(of_name));
    } else if (!says_nothing) {
      fail_argument(ErrorCode::duplicate, "metadata", name, "one member of that name");
    }
  };
  add("version", metadata.version, metadata.version.empty());
  add("thalia_version", metadata.thalia_version, metadata.thalia_version.empty());
  add("created", metadata.created, metadata.created.empty());
  add("description", metadata.description, metadata.description.empty());
  Value tags = Value::array();
  for (const std::string& tag : metadata.tags) tags.push_back(tag);
  add("tags", std::move(tags), metadata.tags.empty());
  const std::string history =
      "{\"growth_history\":" + growth_history_json(metadata.growth_history) + "}";
  add("growth_history", parse_json(history).at("growth_history"), metadata.growth_history.empty());
  add("training_info", metadata.training_info, metadata.training_info.size() == 0);
  add("hardware", metadata.hardware, metadata.hardware.size() == 0);
  add("custom", metadata.custom, metadata.custom.size() == 0);
  // The schema's members come first and in its order, whatever order they were read in.
  for (const auto& [name, member] : metadata.other.members()) value.add(name, member);
  return value;
}

std::string iso_time(std::uint64_t seconds) {
  using namespace std::chrono;
  const auto since = std::chrono::seconds(static_cast<std::int64_t>(
      std::min<std::uint64_t>(seconds, 253'402'300'799)));  // the last second of the year 9999
  const auto day = floor<days>(since);
  const year_month_day date{sys_days(day)};
  const hh_mm_ss time(since - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

}  // namespace thalia
