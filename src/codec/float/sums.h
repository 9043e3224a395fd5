// Sums over f64 numbers in eight lanes, whatever the registers hold: their order, and so each bit
// of the result, is the same for all sets of instructions. Every set has these functions compiled
// for it, as part of a function of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "codec/float/kernels.h"

namespace thalia::codec {

using Lanes [[gnu::vector_size(64)]] = double;
using LaneBits [[gnu::vector_size(64)]] = std::int64_t;
static_assert(sizeof(Lanes) == kSumLanes * sizeof(double));

[[gnu::always_inline]] inline void range_in_lanes(const double* numbers, std::size_t count,
                                                  double limit, NumberRange& out) noexcept {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Lanes sum{}, min = sum + kInfinity, max = sum - kInfinity;
  LaneBits below{};
  const LaneBits magnitude = below + std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < count; i += kSumLanes) {
    Lanes x;
    std::memcpy(&x, numbers + i, sizeof x);
    sum += x;
    min = x < min ? x : min;
    max = x > max ? x : max;
    below -= (Lanes)((LaneBits)x & magnitude) < limit;
  }
  out = {.min = kInfinity, .max = -kInfinity};
  for (std::size_t lane = 0; lane < kSumLanes; ++lane) {
    out.sum += sum[lane];
    out.min = min[lane] < out.min ? min[lane] : out.min;
    out.max = max[lane] > out.max ? max[lane] : out.max;
    out.below += static_cast<std::uint64_t>(below[lane]);
  }
}

[[gnu::always_inline]] inline double squares_in_lanes(const double* numbers, std::size_t count,
                                                      double mean) noexcept {
  Lanes squares{};
  for (std::size_t i = 0; i < count; i += kSumLanes) {
    Lanes x;
    std::memcpy(&x, numbers + i, sizeof x);
    squares += (x - mean) * (x - mean);
  }
  double sum = 0;
  for (std::size_t lane = 0; lane < kSumLanes; ++lane) sum += squares[lane];
  return sum;
}

}  // namespace thalia::codec
