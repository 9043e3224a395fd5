// All axes of a brain that count the neurons of one region.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "state/brain/axes.h"
#include "state/growth/prune_log.h"

namespace thalia::state {

struct NeuronAxis {
  TensorPlace place;
  unsigned axis = 0;
  bool is_weights = false;  ///< of a matrix of weights
};

struct NeuronAxes {
  std::vector<NeuronAxis> axes;
  std::vector<std::string> targets;  ///< regions and pathways that have inputs from the region
};

/// The axes in the region itself, in its connections, and in regions and pathways with an axis
/// "source:REGION". Reads every region. @throws UsageError (wrong_state) for a region with
/// populations or groups of neurons; (size_mismatch) for an axis of another extent.
NeuronAxes neuron_axes(const BrainState& brain, std::string_view region,
                       const BrainRegion& of_region, const TensorAxes& declared);

}  // namespace thalia::state
