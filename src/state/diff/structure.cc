// Compares tables and texts of two checkpoints. Numbers and texts are given as JSON, an empty text
// means that a side has nothing there. JSON texts are compared member by member and by meaning:
// spaces, the order of members and escapes do not count.

#include "state/diff/structure.h"

#include <algorithm>
#include <map>

#include "json/copy.h"
#include "json/writer.h"
#include "state/value/path_names.h"
#include "thalia/state/brain.h"

namespace thalia::state {
namespace {

// canonical_object() takes objects only.
std::string in_object(const std::string& value) {
  return "{\"value\":" + value + "}";
}

// Equal texts are the usual case and need no parsing.
bool mean_the_same(const std::string& a, const std::string& b, unsigned max_depth) {
  return a == b || json::canonical_object(in_object(a), max_depth) ==
                       json::canonical_object(in_object(b), max_depth);
}

template <typename T>
std::string json_text(const T& value) {
  std::string text;
  JsonWriter(text).value(value);
  return text;
}

template <typename T>
void add_fact(std::vector<FieldDiff>& facts, std::string_view field, const T& before,
              const T& after) {
  if (before != after) facts.push_back({std::string(field), json_text(before), json_text(after)});
}

void add_time(std::vector<FieldDiff>& facts, std::string_view field,
              std::optional<std::uint64_t> before, std::optional<std::uint64_t> after) {
  if (before == after) return;
  facts.push_back(
      {std::string(field), before ? json_text(*before) : "", after ? json_text(*after) : ""});
}

// How a payload is stored (codec, chunks, place) is no fact: two files of the same state differ in
// it.
bool same_facts(const TensorFacts& a, const TensorFacts& b) {
  return a.layout == b.layout && a.role == b.role && a.content_hash == b.content_hash;
}

TensorDiff on_one_side(const TensorView& tensor, thalia::Change change, const Facts& facts) {
  TensorDiff diff{.name = std::string(tensor.name()), .change = change};
  if (change == thalia::Change::added) {
    diff.after = facts.after(tensor);
  } else {
    diff.before = facts.before(tensor);
  }
  return diff;
}

// A key as it is in FieldDiff::field.
std::string field_key(const std::string& key) {
  return key.empty() || key.find_first_of(".\"") != std::string::npos ? json_text(key) : key;
}

bool is_object(const std::string& json) {
  return json.starts_with('{');
}

void add_differences(std::vector<FieldDiff>& diffs, const std::string& prefix,
                     std::string_view before, std::string_view after, unsigned depth) {
  const json::Members old = json::members_of(before, depth);
  std::map<std::string, std::string, std::less<>> fresh;
  json::Members members = json::members_of(after, depth);
  for (const auto& [key, value] : members) fresh.emplace(key, value);
  for (const auto& [key, value] : old) {
    const std::string field = prefix + field_key(key);
    const auto found = fresh.find(key);
    if (found == fresh.end()) {
      diffs.push_back({field, value, ""});
      continue;
    }
    if (is_object(value) && is_object(found->second)) {
      if (value != found->second) add_differences(diffs, field + ".", value, found->second, depth);
    } else if (!mean_the_same(value, found->second, depth)) {
      diffs.push_back({field, value, found->second});
    }
    fresh.erase(found);
  }
  // What is left of `fresh` was added. Through `members`, for their order in the text.
  for (auto& [key, value] : members) {
    if (fresh.contains(key)) diffs.push_back({prefix + field_key(key), "", std::move(value)});
  }
}

}  // namespace

TensorFilter::TensorFilter(std::vector<std::string> patterns)
    : patterns_(std::move(patterns)), use_("tensors", patterns_) {}

bool TensorFilter::takes(std::string_view region, const TensorView& tensor) {
  if (takes_everything()) return true;
  const std::string path = path_in_region(region, component_of_role(tensor.role()), tensor.name());
  return takes({.path = path, .region = region, .name = tensor.name()});
}

bool TensorFilter::takes(const ConnectionView& connection, std::string_view matrix) {
  if (takes_everything()) return true;
  const std::string path = path_in_connection(connection.source, connection.target, matrix);
  return takes({.path = path, .region = {}, .name = {}});
}

bool TensorFilter::takes(const TensorNames& names) {
  use_.see(names);
  return std::any_of(patterns_.begin(), patterns_.end(),
                     [&](const std::string& pattern) { return names.fit(pattern); });
}

TensorFacts tensor_facts(const TensorView& tensor) {
  return {.layout = tensor.layout(),
          .role = tensor.role(),
          .logical_bytes = tensor.logical_bytes(),
          .content_hash = tensor.content_hash()};
}

std::vector<FieldDiff> diff_objects(std::string_view before, std::string_view after,
                                    const ReadLimits& limits) {
  std::vector<FieldDiff> diffs;
  if (before == after) return diffs;
  add_differences(diffs, "", before.empty() ? "{}" : before, after.empty() ? "{}" : after,
                  limits.max_json_depth);
  return diffs;
}

std::optional<TensorDiff> diff_tensors(const TensorView& before, const TensorView& after,
                                       const Facts& facts) {
  const TensorFacts old = facts.before(before);
  const TensorFacts fresh = facts.after(after);
  if (same_facts(old, fresh)) return std::nullopt;
  return TensorDiff{.name = std::string(before.name()),
                    .change = thalia::Change::changed,
                    .before = old,
                    .after = fresh};
}

RegionDiff diff_regions(const RegionView& before, const RegionView& after, TensorFilter& filter,
                        const ReadLimits& limits, const Facts& facts) {
  RegionDiff diff{.name = std::string(before.name())};
  if (filter.takes_everything()) {
    diff.logical_bytes = after.logical_bytes();
    add_fact(diff.facts, "n_neurons", before.n_neurons(), after.n_neurons());
    add_fact(diff.facts, "n_inputs", before.n_inputs(), after.n_inputs());
    add_fact(diff.facts, "neuron_type", neuron_type_name(before.neuron_type()),
             neuron_type_name(after.neuron_type()));
    add_time(diff.facts, "homeostatic_updated", before.homeostatic_updated(),
             after.homeostatic_updated());
    diff.config = diff_objects(before.config_json(), after.config_json(), limits);
    diff.metadata = diff_objects(before.metadata_json(), after.metadata_json(), limits);
  }

  // Both directories are ordered by name, so that one pass over both finds the pairs.
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  while (a < before.tensor_count() || b < after.tensor_count()) {
    std::optional<TensorView> old;
    std::optional<TensorView> fresh;
    if (a < before.tensor_count()) old = before.tensor(a);
    if (b < after.tensor_count()) fresh = after.tensor(b);
    // Below 0: only the old side has this name; above 0: only the new one.
    const int order = !old ? 1 : !fresh ? -1 : old->name().compare(fresh->name());
    a += order <= 0;
    b += order >= 0;
    // Either name may fit: the role is a part of it.
    const bool takes_old = order <= 0 && filter.takes(before.name(), *old);
    const bool takes_fresh = order >= 0 && filter.takes(after.name(), *fresh);
    if (!takes_old && !takes_fresh) continue;
    ++diff.tensor_count;
    if (!filter.takes_everything() && order >= 0) diff.logical_bytes += fresh->logical_bytes();
    if (order == 0) {
      if (auto changed = diff_tensors(*old, *fresh, facts))
        diff.tensors.push_back(*std::move(changed));
    } else {
      diff.tensors.push_back(order < 0 ? on_one_side(*old, thalia::Change::removed, facts)
                                       : on_one_side(*fresh, thalia::Change::added, facts));
    }
  }
  return diff;
}

bool differs(const RegionDiff& region) noexcept {
  return !region.facts.empty() || !region.config.empty() || !region.metadata.empty() ||
         !region.tensors.empty();
}

RegionDiff region_on_one_side(const RegionView& region, thalia::Change change, TensorFilter& filter,
                              const Facts& facts) {
  RegionDiff diff{.name = std::string(region.name()), .change = change};
  for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
    const TensorView tensor = region.tensor(i);
    if (!filter.takes(region.name(), tensor)) continue;
    diff.tensors.push_back(on_one_side(tensor, change, facts));
    ++diff.tensor_count;
    diff.logical_bytes += tensor.logical_bytes();
  }
  return diff;
}

std::optional<ConnectionDiff> diff_connections(const ConnectionView& before,
                                               const ConnectionView& after, TensorFilter& filter,
                                               const Facts& facts) {
  ConnectionDiff diff{.source = before.source, .target = before.target};
  const auto add = [&](std::string_view name, std::optional<TensorDiff> matrix) {
    if (!filter.takes(before, name) || !matrix) return;
    matrix->name = name;
    diff.matrices.push_back(*std::move(matrix));
  };
  add("weights", diff_tensors(before.weights, after.weights, facts));
  if (before.delays && after.delays) {
    add("delays", diff_tensors(*before.delays, *after.delays, facts));
  } else if (before.delays) {
    add("delays", on_one_side(*before.delays, thalia::Change::removed, facts));
  } else if (after.delays) {
    add("delays", on_one_side(*after.delays, thalia::Change::added, facts));
  }
  if (diff.matrices.empty()) return std::nullopt;
  return diff;
}

ConnectionDiff connection_on_one_side(const ConnectionView& connection, thalia::Change change,
                                      TensorFilter& filter, const Facts& facts) {
  ConnectionDiff diff{.source = connection.source, .target = connection.target, .change = change};
  const auto add = [&](std::string_view name, const TensorView& matrix) {
    if (!filter.takes(connection, name)) return;
    diff.matrices.push_back(on_one_side(matrix, change, facts));
    diff.matrices.back().name = name;
  };
  add("weights", connection.weights);
  if (connection.delays) add("delays", *connection.delays);
  return diff;
}

}  // namespace thalia::state
