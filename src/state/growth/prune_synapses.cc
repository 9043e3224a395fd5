// Removes synapses that are weak, old and unimportant: docs/format/growth.md, "Synapses". Where the
// state lacks a number that a rule needs, or holds NaN, the synapse stays: every comparison below
// is written so that NaN spares. Bits that are removed go to the log first, and undo_pruning() puts
// them back.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "state/growth/prune_log.h"
#include "state/growth/record.h"
#include "state/tensor/element_lookup.h"
#include "state/tensor/element_numbers.h"
#include "state/tensor/sparse_elements.h"
#include "thalia/state/growth.h"

namespace thalia {
namespace {

using state::ElementLookup;

void check_options(const PruneOptions& options) {
  const auto check = [](const char* field, double value) {
    if (value >= 0 && std::isfinite(value)) return;
    fail_argument(ErrorCode::bad_argument, field, fmt::format("{}", value),
                  "a number of 0 or more");
  };
  check("threshold", options.threshold);
  check("importance_threshold", options.importance_threshold);
}

// Why none of the region's synapses may go; empty if some may.
std::string reason_to_spare(const BrainState& brain, const BrainRegion& region,
                            std::string_view name, const PruneOptions& options) {
  if (std::ranges::find(options.guard.protected_names, name) != options.guard.protected_names.end())
    return "the region is protected";
  std::string change = state::task_change_reason(brain, options.guard.task_is_changing,
                                                 options.importance_window_steps);
  if (!change.empty()) return change;
  const Value* tracked = region.find_path("learning_state.importance_window_steps");
  if (tracked == nullptr || tracked->kind() != Value::Kind::number)
    return "learning_state.importance_window_steps does not tell how long importance was tracked";
  if (!(tracked->as_double() >= static_cast<double>(options.importance_window_steps))) {
    return fmt::format("importance was tracked over {} steps, less than {}", tracked->number_text(),
                       options.importance_window_steps);
  }
  return {};
}

// What a region's learning state says of each synapse of a matrix; nullptr if it says nothing.
const Tensor* tracked(const BrainRegion& region, std::string_view region_name,
                      std::string_view member, std::string_view matrix, const Tensor& weights) {
  const Value* found = region.find_path(fmt::format("learning_state.{}.{}", member, matrix));
  if (found == nullptr || !found->is_tensor()) return nullptr;
  const Tensor& tensor = found->as_tensor();
  if (tensor.shape() == weights.shape()) return &tensor;
  throw UsageError(ErrorCode::size_mismatch, "it has another shape than the matrix",
                   {.region = printable(region_name),
                    .tensor = fmt::format("learning_state.{}.{}", member, printable(matrix)),
                    .value = tensor.shape().to_string(),
                    .bound = weights.shape().to_string()});
}

// Row-major numbers, ascending. A weight of 0 is no synapse, whether it is stored or not.
std::vector<std::uint64_t> dead_synapses(const Tensor& weights, const ElementLookup& age,
                                         const ElementLookup& importance,
                                         const PruneOptions& options) {
  std::vector<std::uint64_t> dead;
  ElementLookup(weights).for_each([&](std::uint64_t position, double weight) {
    const bool is_weak = weight != 0 && std::abs(weight) < options.threshold;
    const double importance_here = importance.at(position);
    if (is_weak && age.at(position) >= static_cast<double>(options.min_age_steps) &&
        importance_here >= 0 && importance_here < options.importance_threshold) {
      dead.push_back(position);
    }
  });
  return dead;
}

// The elements' bits, one after the other.
Tensor values_at(const Tensor& tensor, std::span<const std::uint64_t> positions) {
  const std::size_t width = dtype_bits(tensor.dtype()) / 8;
  std::vector<std::byte> values(positions.size() * width);
  const state::SparseElements elements =
      tensor.is_dense() ? state::SparseElements{} : state::sparse_elements(tensor);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    // Every position was found among the stored elements, so that it is there.
    const auto found = std::ranges::lower_bound(elements.positions, positions[i]);
    const std::byte* from =
        tensor.is_dense()
            ? tensor.bytes().data() + positions[i] * width
            : elements.values.data() +
                  static_cast<std::size_t>(found - elements.positions.begin()) * width;
    std::memcpy(values.data() + i * width, from, width);
  }
  return Tensor::copy_of(tensor.dtype(), {positions.size()}, values);
}

// Zero bits in a dense tensor; a sparse one no longer stores the element.
Tensor without(const Tensor& tensor, std::span<const std::uint64_t> positions) {
  const std::size_t width = dtype_bits(tensor.dtype()) / 8;
  if (tensor.is_dense()) {
    Tensor result = tensor;
    const MutableByteSpan bytes = result.mutable_bytes();
    for (const std::uint64_t position : positions)
      std::memset(bytes.data() + position * width, 0, width);
    return result;
  }
  const state::SparseElements all = state::sparse_elements(tensor);
  state::SparseElements kept;
  for (std::size_t i = 0; i < all.positions.size(); ++i) {
    if (std::ranges::binary_search(positions, all.positions[i])) continue;
    kept.positions.push_back(all.positions[i]);
    const std::byte* value = all.values.data() + i * width;
    kept.values.insert(kept.values.end(), value, value + width);
  }
  return state::sparse_tensor(tensor, tensor.shape(), kept);
}

}  // namespace

PruneResult state::prune_synapses(BrainEdit& edit, std::string_view name,
                                  const PruneOptions& options) {
  check_options(options);
  PruneResult result;
  const BrainState& brain = edit.brain();
  // A copy, because the matrices change while age and importance are read.
  const BrainRegion before = edit.current(name);
  if (std::string reason = reason_to_spare(brain, before, name, options); !reason.empty()) {
    result.spared.push_back(std::move(reason));
    return result;
  }
  if (before.find(component::kWeights) == nullptr) return result;
  Value log = state::new_log("synapses", name, brain.training_steps);
  for_each_tensor(edit.region(name).state.at(component::kWeights), [&](const std::string& matrix,
                                                                       Tensor& weights) {
    // Biases and integers are no synapses.
    if (weights.shape().rank() < 2 || !state::is_number_float(weights.dtype())) return;
    const std::string path = "weights." + matrix;
    const auto& kept = options.guard.protected_names;
    if (std::ranges::find(kept, std::string(name) + '/' + path) != kept.end()) {
      result.spared.push_back(path + " is protected");
      return;
    }
    const Tensor* age = tracked(before, name, "synapse_age", matrix, weights);
    const Tensor* importance = tracked(before, name, "synapse_importance", matrix, weights);
    if (age == nullptr || importance == nullptr) {
      // The other matrices may still be pruned.
      result.spared.push_back(fmt::format("{}: no learning_state.{}.{}", path,
                                          age == nullptr ? "synapse_age" : "synapse_importance",
                                          matrix));
      return;
    }
    const auto dead =
        dead_synapses(weights, ElementLookup(*age), ElementLookup(*importance), options);
    if (dead.empty()) return;
    Value& entry = state::add_place(log, {.region = std::string(name), .path = path});
    entry["positions"] = state::index_tensor(dead);
    entry["values"] = values_at(weights, dead);
    weights = without(weights, dead);
    result.synapses_removed += dead.size();
    result.tensors.push_back({std::string(name), path, dead.size()});
  });
  // Nothing was removed: no event, no log.
  if (result.synapses_removed == 0) return result;
  result.regions_affected.emplace_back(name);
  result.log = std::move(log);
  GrowthEvent event;
  event.type = "pruning";
  event.step = brain.training_steps;
  event.region = name;
  event.reason = options.guard.reason.empty() ? "consolidation" : options.guard.reason;
  event.synapses_pruned = result.synapses_removed;
  event.safety_level = options.guard.safety_level;
  event.importance_threshold = options.importance_threshold;
  state::append_event(edit.metadata(), event);
  return result;
}

PruneResult prune_synapses(BrainState& brain, std::string_view region,
                           const PruneOptions& options) {
  state::BrainEdit edit(brain);
  PruneResult result = state::prune_synapses(edit, region, options);
  if (result.synapses_removed != 0) edit.commit();
  return result;
}

}  // namespace thalia
