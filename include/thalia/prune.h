// Pruning: synapses that are dead and neurons that are silent, taken out of a state, and put back.
// Conservative: what is not known to be unused stays.
//
//   thalia::PruneResult result = thalia::prune_synapses(brain, "cortex");
//   if (accuracy_fell) thalia::undo_pruning(brain, result.log);
//
// docs/format/growth.md, "Pruning".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/brain_state.h"
#include "thalia/growth.h"

namespace thalia {

struct PruneOptions {
  double threshold = 0.01;  ///< absolute values of weights below it are weak
  /// Steps that a synapse must have been there.
  std::uint64_t min_age_steps = 10'000;
  /// Steps over which its importance must have been tracked, and since the last change of task.
  std::uint64_t importance_window_steps = 50'000;
  double importance_threshold = 0.001;  ///< importance below it counts as none
  /// True where the caller knows that the task is changing: nothing is pruned.
  bool task_is_changing = false;
  /// Regions, and tensors as "REGION/weights.NAME", that are left alone.
  std::vector<std::string> protected_names{};
  std::string reason = "consolidation";       ///< for the growth history
  std::string safety_level = "conservative";  ///< for the growth history
};

struct RemoveOptions {
  /// Neurons are silent that have not fired for more steps.
  std::uint64_t min_silent_steps = 100'000;
  double strong_weight = 0.1;  ///< a neuron with a weight of this size or more, in or out, stays
  std::uint64_t task_window_steps = 50'000;  ///< since the last change of task
  bool task_is_changing = false;
  std::vector<std::string> protected_names{};      ///< regions
  std::vector<std::uint64_t> protected_neurons{};  ///< indices
  TensorAxes axes{};                               ///< as GrowthOptions::axes
  std::string reason = "silent";
  std::string safety_level = "conservative";
};

struct PrunedTensor {
  std::string region;  ///< or "SOURCE->TARGET"
  std::string path;
  std::uint64_t removed = 0;  ///< synapses; of removed neurons, elements
};

struct PruneResult {
  std::uint64_t synapses_removed = 0;
  std::uint64_t neurons_removed = 0;
  std::vector<std::string> regions_affected;
  std::vector<PrunedTensor> tensors;
  std::vector<std::uint64_t> neurons;  ///< indices before they were removed
  std::vector<std::string> spared;     ///< why something, or all, was left alone
  /// What undo_pruning() needs; a tree of values and tensors that may be kept in a state.
  Value log;
};

/// Removes synapses of the region's matrices of weights whose value is weak, which are old, and
/// which were unimportant over the whole window: their weight becomes 0, and is no longer stored
/// where the matrix is sparse. Of each matrix learning_state.synapse_age and .synapse_importance
/// have to tell, else it is spared, and of the task the brain's `task_change`, else all are. An
/// event of type pruning goes into the growth history where something was removed. After an error
/// nothing has changed.
/// @throws UsageError (not_found); (size_mismatch) where age or importance have another shape than
/// their matrix; (bad_argument).
PruneResult prune_synapses(BrainState& brain, std::string_view region,
                           const PruneOptions& options = {});

/// Removes up to n neurons, the longest silent first: those that learning_state.silent_steps says
/// are silent, without a strong connection in or out, and not protected. None where the brain's
/// `task_change` says nothing of the task. What has an axis of
/// neurons shrinks, connections and the inputs of other regions ("source:REGION") too.
/// @throws UsageError (not_found); (wrong_state, size_mismatch) as grow_output(), and where the
/// region has populations or groups of neurons.
PruneResult remove_neurons(BrainState& brain, std::string_view region, std::uint64_t n,
                           const RemoveOptions& options = {});

/// Puts back what was removed: where nothing has changed since, bit for bit. Other changes since
/// then stay. The growth history keeps the pruning and gets an event of type growth. After an error
/// nothing has changed. @throws UsageError (bad_argument) for a tree that is no log;
/// (wrong_state, size_mismatch, not_found) where the state no longer has the tensors or shapes.
void undo_pruning(BrainState& brain, const Value& log);

}  // namespace thalia
