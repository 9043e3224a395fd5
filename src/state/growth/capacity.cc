// How full each region is and what follows from it, as the original program computed both:
// docs/format/growth.md, "Capacity". Metrics are read from the state and never kept. auto_grow()
// measures all regions before it grows the first, so that the growth of one does not change the
// verdict on another; it and auto_prune() are one edit, which is kept as a whole or not at all.

#include "thalia/state/growth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "state/brain/edit.h"
#include "state/brain/stored_region.h"
#include "state/growth/prune_log.h"
#include "state/growth/region.h"
#include "state/tensor/element_numbers.h"

namespace thalia {
namespace {

// The original program's figures.
constexpr double kSaturated = 0.9;  // of the largest weight
// Not relative: the absolute value from which a synapse counts as used.
constexpr double kUsed = 0.1;
// Fewest neurons that a recommendation and an automatic growth without one add.
constexpr std::uint32_t kLeastRecommended = 10;
constexpr std::uint32_t kLeastAutomatic = 8;

// A number, or the mean of a tensor of numbers or truth values; nullopt of anything else.
std::optional<double> mean_number(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->kind() == Value::Kind::number) return value->as_double();
  if (!value->is_tensor() || value->as_tensor().element_count() == 0) return std::nullopt;
  const Tensor& tensor = value->as_tensor();
  const auto count = static_cast<double>(tensor.element_count());
  double sum = 0;
  if (state::holds_numbers(tensor.dtype())) {
    state::for_each_number(tensor.dtype(), tensor.values(), [&](double number) { sum += number; });
  } else if (tensor.dtype() == DType::boolean) {
    for (const std::byte flag : tensor.values()) sum += flag == std::byte{0} ? 0 : 1;
  } else {
    return std::nullopt;
  }
  return sum / count;
}

double firing_rate(const BrainRegion& region) {
  // Where programs keep the rate, the most specific first. The mean of spikes is the share that
  // fired.
  constexpr std::array<std::string_view, 4> kPlaces{"learning_state.firing_rate",
                                                    "homeostatic.firing_rate",
                                                    "region_state.spikes", "neuron_state.spikes"};
  for (const std::string_view place : kPlaces) {
    if (const auto rate = mean_number(region.find_path(place))) return std::clamp(*rate, 0.0, 1.0);
  }
  return 0;
}

// Counts over the matrices of weights. An element that a sparse matrix does not store is 0: neither
// saturated nor used.
struct WeightCounts {
  std::uint64_t all = 0;
  std::uint64_t saturated = 0;
  std::uint64_t used = 0;

  void add(const Tensor& weights) {
    // The largest of each matrix, not of the region: matrices differ in scale.
    double largest = 0;
    state::for_each_number(weights.dtype(), weights.values(),
                           [&](double weight) { largest = std::max(largest, std::abs(weight)); });
    state::for_each_number(weights.dtype(), weights.values(), [&](double weight) {
      saturated += std::abs(weight) > kSaturated * largest ? 1 : 0;
      used += std::abs(weight) > kUsed ? 1 : 0;
    });
    all += weights.element_count();
  }
  double share(std::uint64_t count) const {
    return all == 0 ? 0 : static_cast<double>(count) / static_cast<double>(all);
  }
};

void recommend(CapacityMetrics& metrics) {
  struct Rule {
    const char* reason;
    bool applies;
    double share;
  };
  // The first rule that applies gives the reason and the share of neurons to add.
  const std::array<Rule, 3> rules{{{"weight_saturation", metrics.weight_saturation > 0.85, 0.20},
                                   {"firing_rate", metrics.firing_rate > 0.9, 0.15},
                                   {"synapse_usage", metrics.synapse_usage > 0.95, 0.15}}};
  const auto found = std::ranges::find_if(rules, &Rule::applies);
  if (found == rules.end()) return;
  metrics.growth_recommended = true;
  metrics.growth_reason = found->reason;
  metrics.growth_amount =
      std::max(kLeastRecommended, static_cast<std::uint32_t>(found->share * metrics.neuron_count));
}

CapacityMetrics metrics_of(const BrainState& brain, const BrainRegion& region) {
  CapacityMetrics metrics{.neuron_count = region.n_neurons};
  metrics.firing_rate = firing_rate(region);
  WeightCounts counts;
  if (const Value* weights = region.find(component::kWeights)) {
    for_each_tensor(*weights, [&](const std::string&, const Tensor& tensor) {
      if (tensor.shape().rank() >= 2 && state::holds_numbers(tensor.dtype())) counts.add(tensor);
    });
  }
  metrics.synapse_count = counts.all;
  metrics.weight_saturation = counts.share(counts.saturated);
  metrics.synapse_usage = counts.share(counts.used);
  metrics.utilization =
      0.4 * metrics.firing_rate + 0.4 * metrics.weight_saturation + 0.2 * metrics.synapse_usage;
  recommend(metrics);
  // Safe means that prune_synapses() with its defaults would not spare the whole region.
  const std::uint64_t window = PruneOptions().importance_window_steps;
  const Value* tracked = region.find_path("learning_state.importance_window_steps");
  metrics.pruning_safe = state::task_change_reason(brain, false, window).empty() &&
                         tracked != nullptr && tracked->kind() == Value::Kind::number &&
                         tracked->as_double() >= static_cast<double>(window);
  return metrics;
}

// Regions, then pathways with their prefix.
std::vector<std::string> names_of(const BrainState& brain) {
  std::vector<std::string> names = brain.regions.names();
  for (const std::string& name : brain.pathways.names())
    names.push_back(std::string(state::kPathwayPrefix) + name);
  return names;
}

}  // namespace

CapacityMetrics capacity_metrics(const BrainState& brain, std::string_view region) {
  return metrics_of(brain, state::require_region(brain, region));
}

std::vector<GrowthNeed> check_growth_needs(const BrainState& brain) {
  std::vector<GrowthNeed> needs;
  for (std::string& name : names_of(brain)) {
    CapacityMetrics metrics = capacity_metrics(brain, name);
    if (metrics.neuron_count != 0) needs.push_back({std::move(name), std::move(metrics)});
  }
  return needs;
}

std::vector<AutoGrowth> auto_grow(BrainState& brain, double threshold,
                                  const GrowthOptions& options) {
  if (!(threshold >= 0 && threshold <= 1)) {
    fail_argument(ErrorCode::bad_argument, "threshold", fmt::format("{}", threshold), "0 to 1");
  }
  std::vector<AutoGrowth> grown;
  state::BrainEdit edit(brain);
  for (const auto& [region, metrics] : check_growth_needs(brain)) {
    if (metrics.utilization <= threshold) continue;
    GrowthOptions of_region = options;
    if (of_region.reason.empty()) {
      of_region.reason = metrics.growth_recommended ? metrics.growth_reason : "high_utilization";
    }
    const std::uint32_t n_new = metrics.growth_recommended
                                    ? metrics.growth_amount
                                    : std::max(kLeastAutomatic, metrics.neuron_count / 10);
    grown.push_back({region, state::grow_output(edit, region, n_new, of_region)});
  }
  if (!grown.empty()) edit.commit();
  return grown;
}

std::vector<AutoPruning> auto_prune(BrainState& brain, const AutoPruneOptions& options) {
  std::vector<AutoPruning> pruned;
  if (!options.enable) return pruned;
  PruneOptions prune = options.prune;
  if (options.safety_level == PruneSafety::aggressive) {
    // The original program's meaning of aggressive.
    prune.threshold *= 2;
    prune.importance_threshold *= 2;
    prune.guard.safety_level = "aggressive";
  }
  state::BrainEdit edit(brain);
  for (std::string& name : names_of(brain)) {
    PruneResult result = state::prune_synapses(edit, name, prune);
    pruned.push_back({std::move(name), std::move(result)});
  }
  edit.commit();
  return pruned;
}

}  // namespace thalia
