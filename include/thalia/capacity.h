// Capacity: how much of a region's neurons and weights is in use, and growing where little is left.
//
//   for (const thalia::GrowthNeed& need : thalia::check_growth_needs(brain)) report(need.region);
//   thalia::auto_grow(brain, 0.8);
//
// docs/format/growth.md, "Capacity".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/brain_state.h"
#include "thalia/growth.h"
#include "thalia/prune.h"

namespace thalia {

/// Shares from 0 to 1.
struct CapacityMetrics {
  std::uint32_t neuron_count = 0;
  std::uint64_t synapse_count = 0;  ///< elements of weights, of sparse ones too
  double firing_rate = 0;           ///< mean rate, or share of neurons that fire
  double weight_saturation = 0;     ///< of |w| above 0.9 of the largest in its matrix
  double synapse_usage = 0;         ///< of |w| above 0.1
  double utilization = 0;           ///< 0.4 firing_rate + 0.4 weight_saturation + 0.2 synapse_usage
  bool growth_recommended = false;
  std::uint32_t growth_amount = 0;  ///< neurons, where growth is recommended
  std::string growth_reason;  ///< "weight_saturation", "firing_rate", "synapse_usage", or empty
  /// The state says that the task has not changed within PruneOptions::importance_window_steps,
  /// and the importance of synapses was tracked as long.
  bool pruning_safe = false;
};

/// Rates come from learning_state or homeostatic `firing_rate`, a number or a tensor, else from
/// region_state or neuron_state `spikes`; without them firing_rate is 0. Of f32, f64, f16, bf16 and
/// integer matrices of the component weights; others do not count. "pathway:NAME" names a pathway.
/// @throws UsageError (not_found).
CapacityMetrics capacity_metrics(const BrainState& brain, std::string_view region);

struct GrowthNeed {
  std::string region;
  CapacityMetrics metrics;
};
/// Every region and pathway with neurons, in their order. Reads all of them.
std::vector<GrowthNeed> check_growth_needs(const BrainState& brain);

struct AutoGrowth {
  std::string region;
  GrowthResult result;
};
/// Grows each region whose utilization is above the threshold: by the recommended amount, else by
/// a tenth, at least 8 neurons. A region that cannot grow by so many is refused as by
/// grow_output(). After an error nothing has changed, in no region. @throws UsageError
/// (bad_argument) for a threshold that is not from 0 to 1; as grow_output().
std::vector<AutoGrowth> auto_grow(BrainState& brain, double threshold = 0.8,
                                  const GrowthOptions& options = {});

enum class PruneSafety {
  conservative,  ///< PruneOptions as they are
  aggressive,    ///< twice their threshold and importance_threshold; all other rules stay
};
struct AutoPruneOptions {
  bool enable = false;  ///< nothing is pruned unless this is set
  PruneSafety safety_level = PruneSafety::conservative;
  PruneOptions prune{};
};
struct AutoPruning {
  std::string region;
  PruneResult result;  ///< with its log
};
/// prune_synapses() of every region and pathway, if it is enabled. Neurons are never removed.
/// After an error nothing has changed, in no region.
std::vector<AutoPruning> auto_prune(BrainState& brain, const AutoPruneOptions& options = {});

}  // namespace thalia
