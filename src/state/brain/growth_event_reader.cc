// Reads one event of a growth history in any of the three shapes in which events were ever written:
// docs/format/states.md, "Growth history". A table says which key fills which field. What does not
// fit its field is kept as JSON among the others, so that an event that is written again loses
// nothing.

#include "state/brain/growth_event_reader.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "json/copy.h"

namespace thalia::state {
namespace {

// A member of the event. Strings are decoded; everything else is its JSON text.
struct Member {
  json::Kind kind;
  std::string text;

  std::string as_json() const {
    if (kind != json::Kind::string) return text;
    std::string quoted;
    JsonWriter(quoted).value(text);
    return quoted;
  }
};

template <typename T>
std::optional<T> parsed(const std::string& token) {
  T value{};
  const char* const end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool set(std::optional<double>& field, const Member& member) {
  if (member.kind == json::Kind::number) field = parsed<double>(member.text);
  return field.has_value();
}

// Also takes "5.0" and "5e0" if the number is whole: NumPy's and JavaScript's writers have such
// counts.
template <typename T>
bool set(std::optional<T>& field, const Member& member) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: above, a double skips integers
  if (member.kind != json::Kind::number) return false;
  field = parsed<T>(member.text);
  if (field) return true;
  const std::optional<double> number = parsed<double>(member.text);
  if (!number || *number != std::floor(*number) || std::abs(*number) > kExact) return false;
  if (std::is_unsigned_v<T> && *number < 0) return false;
  field = static_cast<T>(*number);
  return true;
}

bool set_text(std::string& field, const Member& member) {
  if (member.kind != json::Kind::string || member.text.empty()) return false;
  field = member.text;
  return true;
}

bool set_object(std::string& field, const Member& member) {
  if (member.kind != json::Kind::object) return false;
  field = member.text;
  return true;
}

struct Field {
  std::string_view key;
  std::string_view alias;  ///< in the third shape; empty if it has none or the same
  bool (*set)(GrowthEvent& event, const Member& member);
};

constexpr Field kFields[] = {
    {"type", "", [](GrowthEvent& e, const Member& m) { return set_text(e.type, m); }},
    {"step", "", [](GrowthEvent& e, const Member& m) { return set(e.step, m); }},
    {"region", "component_name",
     [](GrowthEvent& e, const Member& m) { return set_text(e.region, m); }},
    {"reason", "", [](GrowthEvent& e, const Member& m) { return set_text(e.reason, m); }},
    {"neurons_added", "n_neurons_added",
     [](GrowthEvent& e, const Member& m) { return set(e.neurons_added, m); }},
    {"synapses_added", "n_synapses_added",
     [](GrowthEvent& e, const Member& m) { return set(e.synapses_added, m); }},
    {"neurons_removed", "",
     [](GrowthEvent& e, const Member& m) { return set(e.neurons_removed, m); }},
    {"synapses_pruned", "",
     [](GrowthEvent& e, const Member& m) { return set(e.synapses_pruned, m); }},
    {"safety_level", "",
     [](GrowthEvent& e, const Member& m) { return set_text(e.safety_level, m); }},
    {"importance_threshold", "",
     [](GrowthEvent& e, const Member& m) { return set(e.importance_threshold, m); }},
    {"timestamp", "", [](GrowthEvent& e, const Member& m) { return set_text(e.timestamp, m); }},
    {"component_type", "",
     [](GrowthEvent& e, const Member& m) { return set_text(e.component_type, m); }},
    {"event_type", "", [](GrowthEvent& e, const Member& m) { return set_text(e.event_type, m); }},
    {"old_size", "", [](GrowthEvent& e, const Member& m) { return set(e.old_size, m); }},
    {"new_size", "", [](GrowthEvent& e, const Member& m) { return set(e.new_size, m); }},
    {"metrics_before", "",
     [](GrowthEvent& e, const Member& m) { return set_object(e.metrics_before_json, m); }},
    {"metrics_after", "",
     [](GrowthEvent& e, const Member& m) { return set_object(e.metrics_after_json, m); }},
};

// The members of the object, in their order, each key once with the last of its values.
class Members {
 public:
  explicit Members(json::Value& object) {
    object.for_each_member([&](std::string_view key, json::Value& value) {
      Member member{value.kind(), {}};
      member.text =
          member.kind == json::Kind::string ? std::string(value.string()) : json::copied(value);
      const auto [place, is_new] = places_.emplace(std::string(key), members_.size());
      if (is_new) {
        members_.push_back({place->first, std::move(member), false});
      } else {
        members_[place->second].member = std::move(member);
      }
    });
  }

  // The key of the first shape comes before its alias, even if its value does not fit: that value
  // is kept under its key, and the alias's value would be written under the same one.
  void take(const Field& field, GrowthEvent& event) {
    Named* named = find(field.key);
    if (named == nullptr && !field.alias.empty()) named = find(field.alias);
    if (named != nullptr) named->is_taken = field.set(event, named->member);
  }
  bool has(std::string_view key) { return find(key) != nullptr; }
  void keep_rest(GrowthEvent& event) const {
    for (const Named& named : members_) {
      if (!named.is_taken) event.other.emplace_back(named.key, named.member.as_json());
    }
  }

 private:
  struct Named {
    std::string key;
    Member member;
    bool is_taken;
  };

  Named* find(std::string_view key) {
    const auto place = places_.find(key);
    return place == places_.end() ? nullptr : &members_[place->second];
  }

  std::map<std::string, std::size_t, std::less<>> places_;
  std::vector<Named> members_;
};

}  // namespace

GrowthEvent read_growth_event(json::Value& value) {
  GrowthEvent event;
  // The default is that of new events, not of what was read.
  event.type.clear();
  if (value.kind() != json::Kind::object) {
    event.not_an_object_json = json::copied(value);
    return event;
  }
  Members members(value);
  for (const Field& field : kFields) members.take(field, event);
  members.keep_rest(event);
  // Last, since it depends on the other fields.
  if (!members.has("type")) event.type = is_pruning(event) ? "pruning" : "growth";
  return event;
}

}  // namespace thalia::state
