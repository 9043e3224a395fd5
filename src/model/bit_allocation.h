// How many bits each group of a tensor's weights gets, where the whole has a number of them to
// spend. include/thalia/quantization.h, QuantizationOptions::adaptive.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/dtype.h"

namespace thalia::model {

/// The value of all elements of a group of 0 bits: their mean, weighted by `importance` (empty: all
/// alike), as a number that the parameters' type can hold. Of finite numbers.
double group_mean(DType dtype, ByteSpan group, std::span<const double> importance);

/// Bits of each group's codes, 0 to 8, with at most `mean_bits` × elements bits of codes together.
/// `importance` is what a squared error counts, one an element (empty: all alike). Deterministic,
/// whatever `threads`. nullopt where a number is NaN or infinite.
std::optional<std::vector<std::uint8_t>> allocate_bits(DType dtype, ByteSpan dense,
                                                       std::uint32_t group_size, double mean_bits,
                                                       std::span<const double> importance,
                                                       unsigned threads);

}  // namespace thalia::model
