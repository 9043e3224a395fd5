// Shapes that have to agree with a region's count of neurons, or with each other.
// docs/format/states.md, "Shapes".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "thalia/state/brain.h"
#include "thalia/types.h"

namespace thalia::state {

/// By paths in the region, with dots, the component first.
using ShapesByPath = std::map<std::string, Shape, std::less<>>;

/// The shapes of the tensors that check_shapes() looks at.
ShapesByPath ruled_shapes(const BrainRegion& region);

/// Nothing is asked of a region without neurons. @throws UsageError (size_mismatch) naming region,
/// tensor, shape and what was expected: for `homeostatic.thresholds` and `scaling_factors` and
/// `learning_state.silent_steps` unless they are [n_neurons]; for `synapse_age` and
/// `synapse_importance` that have another shape than their matrix.
void check_shapes(std::string_view name, std::uint64_t n_neurons, const ShapesByPath& shapes);

}  // namespace thalia::state
