// Tensors whose elements compress as a trained model's do.
#pragma once

#include "support/sample.h"

namespace thalia::test {

/// Floats whose exponents are skewed and whose other bits are noise; small integers; else what
/// dense_tensor() makes. The same for the same seed.
SampleTensor skewed_tensor(std::string name, DType dtype, Shape shape, std::uint64_t seed = 1);

}  // namespace thalia::test
