// What a squared error of each element counts.
#pragma once

#include <cstdint>
#include <vector>

#include "thalia/state/tensor_value.h"

namespace thalia::state {

/// The squares of sensitivities, one an element. @throws UsageError naming `sensitivity` unless the
/// tensor is dense, of f32, f64, f16 or bf16, with so many elements, and its squares are finite.
std::vector<double> importance_from(const Tensor& sensitivity, std::uint64_t elements);

}  // namespace thalia::state
