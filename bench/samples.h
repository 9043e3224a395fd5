// Weights of stated entropy, the same on every machine: normal, mean 0, sigma 0.02.
#pragma once

#include <cstdint>
#include <vector>

#include "thalia/dtype.h"

namespace thalia::bench {

/// `bytes` is cut down to whole elements. Reproducible: each MiB has its own seed.
std::vector<float> normal_f32(std::uint64_t bytes);
/// The same values, rounded to nearest even.
std::vector<BFloat16> normal_bf16(std::uint64_t bytes);

}  // namespace thalia::bench
