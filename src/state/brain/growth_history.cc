// The growth history as events, and back: docs/format/states.md, "Growth history".
// append_growth_event() copies the metadata's text through and touches nothing but the end of the
// array, so that members and events that this version does not know stay as they are. Texts come
// from files: lengths, depth and the number of events are limited.

#include "thalia/state/metadata.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "base/fail.h"
#include "json/copy.h"
#include "json/reader.h"
#include "json/writer.h"
#include "state/brain/growth_event_reader.h"

namespace thalia {
namespace {

constexpr std::string_view kMember = "growth_history";

void check_length(std::string_view metadata, const ReadLimits& limits) {
  if (metadata.size() > limits.max_json_bytes)
    fail_limit("metadata", "max_json_bytes", metadata.size(), limits.max_json_bytes);
}

// An absent history and null mean the same; anything else would be overwritten by an append.
void check_kind(const json::Value& value) {
  if (value.kind() == json::Kind::array || value.kind() == json::Kind::null) return;
  throw FormatError(ErrorCode::bad_value, {},
                    {.section = "metadata",
                     .field = std::string(kMember),
                     .value = std::string(json::kind_name(value.kind())),
                     .bound = "an array"});
}

void check_count(std::size_t events) {
  if (events > kMaxGrowthEvents) {
    fail_field(ErrorCode::limit_exceeded, "metadata", kMember, 0, "more events",
               std::to_string(kMaxGrowthEvents));
  }
}

bool mentions(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// Writes the members of an event and remembers their keys, so that a member among the others is not
// written a second time.
class EventWriter {
 public:
  explicit EventWriter(std::string& out) : json_(out) {}

  template <typename T>
  void add(std::string_view key, const std::optional<T>& value) {
    if (value) start(key).value(*value);
  }
  void add(std::string_view key, const std::string& text) {
    if (!text.empty()) start(key).value(text);
  }
  void add_json(std::string_view key, const std::string& json) {
    if (!json.empty()) start(key).raw(json);
  }
  bool has(std::string_view key) const { return keys_.contains(key); }
  void write(const GrowthEvent& event) {
    json_.begin_object();
    add("step", event.step);
    add("region", event.region);
    add("neurons_added", event.neurons_added);
    add("synapses_pruned", event.synapses_pruned);
    add("reason", event.reason);
    add("type", event.type);
    add("safety_level", event.safety_level);
    add("importance_threshold", event.importance_threshold);
    add("synapses_added", event.synapses_added);
    add("neurons_removed", event.neurons_removed);
    add("old_size", event.old_size);
    add("new_size", event.new_size);
    add("timestamp", event.timestamp);
    add("component_type", event.component_type);
    add("event_type", event.event_type);
    add_json("metrics_before", event.metrics_before_json);
    add_json("metrics_after", event.metrics_after_json);
    for (const auto& [key, value] : event.other) {
      if (!has(key)) json_.key(key).raw(value);
    }
    json_.end_object();
  }

 private:
  JsonWriter& start(std::string_view key) {
    keys_.insert(key);
    return json_.key(key);
  }

  JsonWriter json_;
  std::unordered_set<std::string_view> keys_;
};

}  // namespace

bool is_pruning(const GrowthEvent& event) {
  for (const std::string* text : {&event.type, &event.event_type}) {
    if (mentions(*text, "prun") || mentions(*text, "remov")) return true;
  }
  return event.synapses_pruned.value_or(0) > 0 || event.neurons_removed.value_or(0) > 0;
}

std::int64_t neuron_change(const GrowthEvent& event) noexcept {
  // Numbers may come from a file: sums end at the limits instead of overflowing.
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  const auto size = [&](std::uint64_t n) { return static_cast<std::int64_t>(std::min(n, kMax)); };
  // The second shape of events may have sizes alone.
  if (!event.neurons_added && !event.neurons_removed) {
    return event.old_size && event.new_size ? size(*event.new_size) - size(*event.old_size) : 0;
  }
  const std::int64_t added = event.neurons_added.value_or(0);
  const std::int64_t removed = size(event.neurons_removed.value_or(0));
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  return added < kMin + removed ? kMin : added - removed;
}

std::vector<GrowthEvent> parse_growth_history(std::string_view metadata_json,
                                              const ReadLimits& limits) {
  std::vector<GrowthEvent> events;
  if (metadata_json.empty()) return events;
  check_length(metadata_json, limits);
  json::walk_object(metadata_json, limits.max_json_depth,
                    [&](std::string_view key, json::Value& value) {
                      if (key != kMember) return;
                      check_kind(value);
                      events.clear();
                      if (value.kind() == json::Kind::null) return;
                      value.for_each_element([&](json::Value& element) {
                        check_count(events.size() + 1);
                        events.push_back(state::read_growth_event(element));
                      });
                    });
  return events;
}

std::string growth_event_json(const GrowthEvent& event) {
  if (!event.not_an_object_json.empty()) return event.not_an_object_json;
  std::string text;
  EventWriter(text).write(event);
  return text;
}

std::string growth_history_json(std::span<const GrowthEvent> events) {
  std::string text;
  JsonWriter json(text);
  json.begin_array();
  for (const GrowthEvent& event : events) json.raw(growth_event_json(event));
  json.end_array();
  return text;
}

std::string append_growth_event(std::string_view metadata_json, const GrowthEvent& event,
                                const ReadLimits& limits) {
  if (metadata_json.empty()) metadata_json = "{}";
  check_length(metadata_json, limits);
  // A first pass over the text counts the histories, the second copies.
  std::size_t histories = 0;
  json::walk_object(metadata_json, limits.max_json_depth,
                    [&](std::string_view key, json::Value&) { histories += key == kMember; });

  std::string text;
  JsonWriter out(text);
  std::size_t seen = 0;
  const auto copy = [&](std::string_view key, json::Value& value) {
    // Members are copied as text, one by one, with nothing of them in memory.
    out.key(key);
    // If several members have one key, the last one counts.
    if (key != kMember || ++seen < histories) {
      json::copy_value(value, out);
      return;
    }
    check_kind(value);
    out.begin_array();
    std::size_t events = 1;
    if (value.kind() == json::Kind::array) {
      value.for_each_element([&](json::Value& element) {
        check_count(++events);
        json::copy_value(element, out);
      });
    }
    out.raw(growth_event_json(event)).end_array();
  };
  out.begin_object();
  json::walk_object(metadata_json, limits.max_json_depth, copy);
  if (histories == 0) out.key(kMember).begin_array().raw(growth_event_json(event)).end_array();
  out.end_object();
  return text;
}

}  // namespace thalia
