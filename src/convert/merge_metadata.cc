// Merges metadata member by member: a member that all inputs agree on is copied as text, one on
// which they differ goes through MergeConflicts. Two members are special. The growth history is
// merged event by event. Members that describe one file are taken from the first, since they always
// differ. Keys keep the order in which they were first seen.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "convert/merge_plan.h"
#include "json/copy.h"
#include "json/writer.h"
#include "thalia/error.h"
#include "thalia/state/metadata.h"

namespace thalia::formats {
namespace {

constexpr std::string_view kHistoryKey = "growth_history";

struct Held {
  std::size_t input;
  std::string json;
};

struct Step {
  std::uint64_t step;
  GrowthEvent event;
};

// An event without a step happened after the one before it: it inherits that step, and so stays
// after it when the events of several files are sorted.
std::vector<Step> steps_of(std::vector<GrowthEvent> events) {
  std::vector<Step> steps;
  std::uint64_t step = 0;
  for (GrowthEvent& event : events) {
    step = event.step.value_or(step);
    steps.push_back({step, std::move(event)});
  }
  return steps;
}

std::vector<GrowthEvent> history_of(const Reader& reader, const ReadLimits& limits) {
  return with_path(reader.path().native(),
                   [&] { return parse_growth_history(reader.metadata_json(), limits); });
}

// Files with a common past repeat its events. An event that a file has n times is kept n times in
// all, however many files have it: equal events of one file are different events.
std::string merged_history(const std::vector<Reader>& inputs, const ReadLimits& limits) {
  std::map<std::string, std::size_t> times;
  std::vector<Step> merged;
  for (const Reader& input : inputs) {
    std::map<std::string, std::size_t> times_here;
    for (Step& step : steps_of(history_of(input, limits))) {
      const std::string text = growth_event_json(step.event);
      std::size_t& before = times[text];
      if (++times_here[text] <= before) continue;
      ++before;
      merged.push_back(std::move(step));
    }
  }
  std::stable_sort(merged.begin(), merged.end(),
                   [](const Step& a, const Step& b) { return a.step < b.step; });
  std::vector<GrowthEvent> events;
  for (Step& step : merged) events.push_back(std::move(step.event));
  return growth_history_json(events);
}

bool mean_the_same(const Held& a, const Held& b, unsigned depth) {
  // Numbers and spaces may be written in several ways, and keys may come in any order.
  const auto canonical = [&](const Held& held) {
    return json::canonical_object("{\"value\":" + held.json + "}", depth);
  };
  return a.json == b.json || canonical(a) == canonical(b);
}

// Members that describe the file they are in. No two files agree on them, and that is no conflict.
bool is_of_one_file(std::string_view key) {
  return key == "version" || key == "thalia_version" || key == "created";
}

}  // namespace

std::string merge_metadata(const std::vector<Reader>& inputs, const ReadLimits& limits,
                           MergeConflicts& conflicts) {
  const unsigned depth = limits.max_json_depth;
  std::vector<std::string> keys;
  std::map<std::string, std::vector<Held>> found;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].metadata_json().empty()) continue;
    for (auto& [key, value] : json::members_of(inputs[i].metadata_json(), depth)) {
      std::vector<Held>& holders = found[key];
      if (holders.empty()) keys.push_back(key);
      holders.push_back({i, std::move(value)});
    }
  }
  if (keys.empty()) return {};

  std::string text;
  JsonWriter json(text);
  json.begin_object();
  for (const std::string& key : keys) {
    const std::vector<Held>& holders = found[key];
    const bool agree = std::all_of(holders.begin() + 1, holders.end(), [&](const Held& held) {
      return mean_the_same(holders.front(), held, depth);
    });
    if (key == kHistoryKey && !agree) {
      json.key(key).raw(merged_history(inputs, limits));
      continue;
    }
    if (is_of_one_file(key)) {
      json.key(key).raw(holders.front().json);
      continue;
    }
    std::vector<std::size_t> numbers;
    for (const Held& held : holders) numbers.push_back(held.input);
    const auto of = [&](std::size_t input) -> const Held& {
      return *std::find_if(holders.begin(), holders.end(),
                           [&](const Held& held) { return held.input == input; });
    };
    const std::size_t chosen = conflicts.choose(
        fmt::format("metadata '{}'", printable(key)), numbers,
        [&](std::size_t a, std::size_t b) { return mean_the_same(of(a), of(b), depth); });
    json.key(key).raw(of(chosen).json);
  }
  json.end_object();
  return text;
}

}  // namespace thalia::formats
