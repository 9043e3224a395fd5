// Growth: neurons and inputs added to the regions of a state.
//
//   thalia::BrainState brain = thalia::BrainCheckpoint::load("brain.thalia");
//   thalia::grow_output(brain, "cortex", 32, {.seed = 7});                    // rows
//   thalia::grow_source(brain, "striatum", "cortex", 96, {.seed = 7});        // columns
//
// docs/format/growth.md, "Growth".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/brain_state.h"
#include "thalia/shape.h"

namespace thalia {

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
  /// grow_output: other regions and pathways with an axis "source:REGION" grow it too; of a
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

}  // namespace thalia
