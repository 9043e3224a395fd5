// Weights of stated entropy: normal, mean 0, sigma 0.02. The same in every run on a machine; on
// another, the last bits of some differ, as its logarithm and cosine do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "thalia/types.h"

namespace thalia::measure {

/// Fills `out` on up to `threads` threads (0: one a core), with the same whatever their number:
/// each MiB has its own seed.
void fill_normal(std::span<float> out, unsigned threads);
/// `bytes` is cut down to whole elements.
std::vector<float> normal_f32(std::uint64_t bytes);
/// The same values, rounded to nearest even.
std::vector<BFloat16> normal_bf16(std::uint64_t bytes);

}  // namespace thalia::measure
