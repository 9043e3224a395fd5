// Networks that change their size: growth, pruning, capacity, and growth in a file.
// docs/format/growth.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/append.h"
#include "thalia/state/brain.h"
#include "thalia/types.h"

namespace thalia {

// Growth: neurons and inputs added to the regions of a state.
//
//   thalia::BrainState brain = thalia::BrainCheckpoint::load("brain.thalia");
//   thalia::grow_output(brain, "cortex", 32, {.seed = 7});                    // rows
//   thalia::grow_source(brain, "striatum", "cortex", 96, {.seed = 7});        // columns
//
// docs/format/growth.md, "Growth".

/// How new weights of a floating-point matrix are drawn. All three are functions of the seed, the
/// region, the tensor's path and the indices of the element: the same on every machine.
enum class WeightInit {
  sparse_random,  ///< with probability `sparsity` from [0, scale), else 0
  xavier,         ///< from [-a, a), a = scale * sqrt(6 / (fan in + fan out)) of the grown matrix
  uniform,        ///< from [0, scale)
};
std::string_view weight_init_name(WeightInit init) noexcept;
std::optional<WeightInit> weight_init_from_name(std::string_view name) noexcept;

struct GrowthOptions {
  WeightInit initialization = WeightInit::sparse_random;
  double sparsity = 0.1;          ///< share of the possible new connections that are made, 0 to 1
  std::optional<double> scale{};  ///< finite; nullopt: 0.3, with xavier 1
  std::uint64_t seed = 0;
  /// In a region with several populations (axes "neurons:NAME"), the one that grows.
  std::string population{};
  /// The axes of the region that grows, by paths or patterns as in a PrecisionPattern. They take
  /// precedence over "axes" in its metadata.
  TensorAxes axes{};
  /// grow_output: other regions and pathways with an axis "source:REGION" grow it too; for a
  /// region's own such axis say "neurons".
  bool grow_targets = false;
  std::string reason{};  ///< for the growth history
};

struct GrownTensor {
  std::string region;  ///< or "pathway:NAME", or "SOURCE->TARGET" of a connection
  std::string path;    ///< in the region's state; "weights" and "delays" of a connection
  Shape old_shape{};
  Shape new_shape{};
  std::string
      name{};  ///< in the file that has grown; empty of a connection, and of a state in memory
};

struct GrowthResult {
  std::uint32_t neurons_added = 0;
  std::uint32_t inputs_added = 0;
  std::uint32_t n_neurons = 0;       ///< of the region, now
  std::int64_t synapses_added = 0;   ///< as the header counts them: stored elements of weights
  std::vector<GrownTensor> tensors;  ///< in the order of the state, then of the connections
  /// Regions and pathways that have an axis "source:REGION", which was left as it is: as the
  /// options did not say grow_targets. A region that would be read on access is not looked at.
  std::vector<std::string> targets_left;
  std::string nothing_done;  ///< why nothing was; empty where something was
};

/// Adds neurons after the last one: rows of every matrix, and elements of all that has an axis of
/// neurons; connections from and to the region grow with it, weights and delays. Inputs that other
/// regions have from this one ("source:REGION") grow where the options say grow_targets; else they
/// stay, and the result names these regions. What was there keeps indices and bits. An event goes
/// into metadata["growth_history"]. After an error nothing has changed. `region` may be
/// "pathway:NAME". @throws UsageError (not_found) naming the region; (wrong_state) if it has no
/// neurons, or an axis is ambiguous: say it in "axes"; (size_mismatch) where axes and shapes
/// disagree, or the count passes 2^32 - 1; (dtype_mismatch) for weights of an element type of less
/// than 16 bits; (bad_argument) for options out of bounds.
GrowthResult grow_output(BrainState& brain, std::string_view region, std::uint32_t n_new,
                         const GrowthOptions& options = {});

/// Gives the region `new_size` inputs from one source: columns of that source's tensors only. Does
/// nothing if it has as many. @throws as grow_output(); UsageError (not_found) naming the
/// sources that there are where the region has no axis of that one.
GrowthResult grow_source(BrainState& brain, std::string_view region, std::string_view source,
                         std::uint64_t new_size, const GrowthOptions& options = {});

// Pruning: synapses that are dead and neurons that are silent, taken out of a state, and put back.
// Conservative: what is not known to be unused stays.
//
//   thalia::PruneResult result = thalia::prune_synapses(brain, "cortex");
//   if (accuracy_fell) thalia::undo_pruning(brain, result.log);
//
// docs/format/growth.md, "Pruning".

/// What keeps a network from being pruned, and what its growth history says of a pruning.
struct PruneGuard {
  /// True where the caller knows that the task is changing: nothing is pruned.
  bool task_is_changing = false;
  /// Regions, and tensors as "REGION/weights.NAME", that are left alone.
  std::vector<std::string> protected_names{};
  /// For the growth history; empty: "consolidation", or of neurons "silent".
  std::string reason{};
  std::string safety_level = "conservative";  ///< for the growth history
};

struct PruneOptions {
  double threshold = 0.01;  ///< absolute values of weights below it are weak
  /// Steps that a synapse must have been there.
  std::uint64_t min_age_steps = 10'000;
  /// Steps over which its importance must have been tracked, and since the last change of task.
  std::uint64_t importance_window_steps = 50'000;
  double importance_threshold = 0.001;  ///< importance below it counts as none
  PruneGuard guard{};
};

struct RemoveOptions {
  /// Neurons are silent that have not fired for more steps.
  std::uint64_t min_silent_steps = 100'000;
  double strong_weight = 0.1;  ///< a neuron with a weight of this size or more, in or out, stays
  std::uint64_t task_window_steps = 50'000;        ///< since the last change of task
  std::vector<std::uint64_t> protected_neurons{};  ///< indices
  TensorAxes axes{};                               ///< as GrowthOptions::axes
  PruneGuard guard{};                              ///< protects whole regions alone
};

struct PrunedTensor {
  std::string region;  ///< or "SOURCE->TARGET"
  std::string path;
  std::uint64_t removed = 0;  ///< synapses; for removed neurons, elements
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
/// if the matrix is sparse. A matrix is spared if learning_state.synapse_age and
/// .synapse_importance do not describe it. All are spared if the brain's `task_change` says nothing
/// of the task. An event of type pruning goes into the growth history if something was removed.
/// After an error nothing has changed.
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

// Capacity: how much of a region's neurons and weights is in use, and growing where little is left.
//
//   for (const thalia::GrowthNeed& need : thalia::check_growth_needs(brain)) report(need.region);
//   thalia::auto_grow(brain, 0.8);
//
// docs/format/growth.md, "Capacity".

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
/// region_state or neuron_state `spikes`; without them firing_rate is 0. Weights are the f32, f64,
/// f16, bf16 and integer matrices of the component weights; others do not count. "pathway:NAME"
/// names a pathway.
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

// Growth of one region of a .thalia file, in place: other regions are neither read nor moved.
//
//   thalia::grow_file(path, "cortex", 32, {.seed = 7});
//
// docs/format/growth.md, "Growth"; docs/format/writing.md, "In-place append".

struct GrowFileResult {
  GrowthResult growth;
  AppendResult append;  ///< all zero where nothing was done
  /// Names of tensors that were quantized and have grown: they are dense now.
  std::vector<std::string> restored;
};

/// grow_output() of a region of a file, which is read, grown and appended with the connections that
/// touch it; the growth history in the metadata gets an event. Works on any file of version 1, a
/// tensor that no state names having the path that it is loaded under: COMPONENT.NAME, as a rule.
/// Tensors that do not grow are taken over as they are stored. Those that do keep element type and
/// encoding, but for quantized ones, which become dense; where the region's are compressed, they
/// are too, unless the options name a codec. A crash leaves the old state or the new one.
/// GrowthOptions::grow_targets is refused.
/// @throws as Appender and grow_output().
GrowFileResult grow_file(const std::filesystem::path& path, std::string_view region,
                         std::uint32_t n_new, const GrowthOptions& growth = {},
                         const AppendOptions& options = {});

/// The same of grow_source(), by `n_new` more inputs.
GrowFileResult grow_file_source(const std::filesystem::path& path, std::string_view region,
                                std::string_view source, std::uint32_t n_new,
                                const GrowthOptions& growth = {},
                                const AppendOptions& options = {});

// Older, smaller states loaded into larger ones.
//
//   thalia::BrainState grown = build_brain(larger_config);
//   thalia::load_into(grown, thalia::BrainCheckpoint::load("smaller.thalia"));
//
// docs/format/growth.md, "Growth".

/// What to do with what is larger in the older state than in the target.
enum class OnLarger { refuse, grow };

struct LoadIntoOptions {
  OnLarger on_larger = OnLarger::refuse;
  GrowthOptions growth{};  ///< how the target grows: initialisation, scale, seed
};

struct LoadIntoResult {
  std::uint64_t tensors_whole = 0;         ///< of the same shape in both
  std::uint64_t tensors_in_corner = 0;     ///< smaller than the target's: the rest is as it was
  std::uint64_t elements_copied = 0;       ///< of both kinds, zeros of sparse ones included
  std::uint64_t elements_kept = 0;         ///< of these tensors in the target: its own
  std::uint64_t values_copied = 0;         ///< numbers, texts and others that are no tensors
  std::vector<std::string> regions_grown;  ///< with OnLarger::grow
  // Paths from the root of the state, as "regions.cortex.weights.w_ff".
  std::vector<std::string> left_out;  ///< of the older state, without a counterpart
  std::vector<std::string> kept;      ///< tensors of the target without a counterpart
};

/// Loads an older state into a target that was built in its larger shapes. Each tensor fills the
/// corner of the target's of the same path and element type, and what lies outside keeps the
/// target's own; the target's encoding stays. Values that are no tensors are taken over, but for
/// those of a component `config`, which describes the target; so are the training steps and the
/// metadata. Arrays are taken over element by element where both have as many, else whole. A
/// region that has more neurons than in the older state gets an event of type growth. After an
/// error nothing has changed; else references to regions and connections of the target end.
/// @throws UsageError (shape_mismatch) for a tensor of another rank, or one that is larger in the
/// older state if that is to be refused; (dtype_mismatch); (wrong_state) for a target region
/// without neurons whose counterpart has some.
LoadIntoResult load_into(BrainState& target, const BrainState& older,
                         const LoadIntoOptions& options = {});

}  // namespace thalia
