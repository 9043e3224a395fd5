// Shapes that have to agree with a region's count of neurons, or with each other.
#pragma once

#include <string_view>

#include "thalia/state/brain.h"

namespace thalia::state {

/// Nothing is asked of a region without neurons. @throws UsageError (size_mismatch) naming region,
/// tensor, shape and what was expected: for `homeostatic.thresholds` and `scaling_factors` and
/// `learning_state.silent_steps` unless they are [n_neurons]; for `synapse_age` and
/// `synapse_importance` that have another shape than their matrix; for axes that the metadata
/// declare as neurons and that are more or fewer. docs/format/states.md, "Shapes".
void check_shapes(std::string_view name, const BrainRegion& region);

}  // namespace thalia::state
