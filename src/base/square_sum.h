// Sums of squares of numbers of any size: the squares of f64 numbers may be too large or too small
// for an f64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace thalia {

/// Stands for sum × 4^scale.
struct SquareSum {
  double sum = 0;
  int scale = 0;

  void add(const SquareSum& other) noexcept {
    if (other.sum == 0) return;
    if (sum == 0) scale = other.scale;
    const int top = std::max(scale, other.scale);
    sum = std::ldexp(sum, 2 * (scale - top)) + std::ldexp(other.sum, 2 * (other.scale - top));
    scale = top;
  }
  /// The root of the mean of `count` squares, at most the greatest f64; 0 if count is 0.
  double root_mean(std::uint64_t count) const noexcept {
    if (count == 0) return 0;
    return std::min(std::ldexp(std::sqrt(sum / static_cast<double>(count)), scale),
                    std::numeric_limits<double>::max());
  }
};

/// The root of a / b, at most the greatest f64.
inline double root_of_ratio(const SquareSum& a, const SquareSum& b) noexcept {
  const double root = std::ldexp(std::sqrt(a.sum / b.sum), a.scale - b.scale);
  return std::min(root, std::numeric_limits<double>::max());
}

/// The sum of the squares of some numbers. `largest` is their largest absolute value, `plain` the
/// sum as computed in f64. If that overflowed or lost too much, `squares_of(factor)` is called
/// for the sum of the squares of the numbers × factor.
template <typename SquaresOf>
SquareSum square_sum(double largest, double plain, const SquaresOf& squares_of) {
  // Sums of 2^64 of these stay finite, and what is lost below them does not count.
  constexpr double kMost = 0x1p900, kLeast = 0x1p-900;
  if (!(largest > 0) || (plain <= kMost && plain >= kLeast)) return {plain, 0};
  // 2^1000 is a factor yet. An infinite number may be the difference of two that are not.
  const int scale = std::isfinite(largest) ? std::max(std::ilogb(largest), -1000) : 1024;
  return {squares_of(std::ldexp(1.0, -scale)), scale};
}

}  // namespace thalia
