// How many bits each group of a tensor's weights gets, if the whole has a number of them to
// spend. include/thalia/state/quantization.h, QuantizationOptions::adaptive.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "thalia/types.h"

namespace thalia::state {

/// The squared error of a group for each number of bits of its codes, 0 to 8; not finite if it
/// cannot have so many.
using Distortions = std::array<double, 9>;

/// The bits of each group's codes, chosen so that the sum of errors is small and the cost stays
/// within `budget`. Steps along the lower convex hull of each group's errors are taken, first those
/// that remove most error for their cost. `cost` is that of a group with so many bits; it does not
/// fall with them, and is 0 for 0 bits. Deterministic.
std::vector<std::uint8_t> spend_bits(
    std::span<const Distortions> errors,
    const std::function<double(std::uint64_t group, unsigned bits)>& cost, double budget);

/// The value of all elements of a group of 0 bits: their mean, weighted by `importance` (empty: all
/// alike), as a number that the parameters' type can hold. All numbers are finite.
double group_mean(DType dtype, ByteSpan group, std::span<const double> importance);

/// The errors of a tensor whose elements all share one minimum and scale, for 1 to 8 bits; there
/// are no codes of 0 bits. nullopt if a number is NaN or infinite. Deterministic, whatever
/// `threads`.
std::optional<Distortions> uniform_errors(DType dtype, ByteSpan dense,
                                          std::span<const double> importance, unsigned threads);

/// Bits of each group's codes, 0 to 8, with at most `mean_bits` × elements bits of codes together.
/// `importance` is what a squared error counts, one an element (empty: all alike). Deterministic,
/// whatever `threads`. nullopt if a number is NaN or infinite.
std::optional<std::vector<std::uint8_t>> allocate_bits(DType dtype, ByteSpan dense,
                                                       std::uint32_t group_size, double mean_bits,
                                                       std::span<const double> importance,
                                                       unsigned threads);

}  // namespace thalia::state
