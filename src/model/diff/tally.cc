// Counts differences between two runs of elements. Two NaNs are the same; a difference that is
// infinite or NaN is counted as not finite and left out of the sums. Squares are summed with a
// scale where they would overflow or vanish (SquareSum). The order of every addition is fixed,
// whatever the compiler makes of it.

#include "model/diff/tally.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace thalia::model {
namespace {

bool is_nan(double value) {
  return std::isnan(value);
}
bool is_nan(std::int64_t) {
  return false;
}
bool is_nan(std::uint64_t) {
  return false;
}
bool is_nan(std::complex<double> value) {
  return std::isnan(value.real()) || std::isnan(value.imag());
}

double distance(double a, double b) {
  return std::abs(a - b);
}
// Exact as an integer, then rounded once.
double distance(std::int64_t a, std::int64_t b) {
  const auto low = static_cast<std::uint64_t>(std::min(a, b));
  return static_cast<double>(static_cast<std::uint64_t>(std::max(a, b)) - low);
}
double distance(std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(std::max(a, b) - std::min(a, b));
}
// hypot does not overflow where the squares would.
double distance(std::complex<double> a, std::complex<double> b) {
  return std::hypot(a.real() - b.real(), a.imag() - b.imag());
}

}  // namespace

// Lanes have sums of their own, so that the compiler may use vectors without changing the order of
// any sum.
template <typename T>
void DifferenceTally::add(std::span<const T> a, std::span<const T> b) {
  assert(a.size() == b.size());
  constexpr std::size_t kLanes = 8;
  constexpr double kFinite = std::numeric_limits<double>::max();
  std::array<std::uint64_t, kLanes> differ{};
  std::array<std::uint64_t, kLanes> lost{};
  std::array<double, kLanes> greatest{};
  std::array<double, kLanes> sums{};
  double factor = 1;
  const auto compare = [&](std::size_t lane, T x, T y) {
    // Without branches, which would keep the loop from being vectorised.
    const bool same = (int{x == y} | (int{is_nan(x)} & int{is_nan(y)})) != 0;
    const double apart = same ? 0.0 : distance(x, y);
    const bool finite = apart <= kFinite;
    const double counted = finite ? apart : 0.0;
    differ[lane] += !same;
    lost[lane] += !finite;
    greatest[lane] = counted > greatest[lane] ? counted : greatest[lane];
    sums[lane] += counted * factor * (counted * factor);
  };
  const auto compare_all = [&] {
    std::size_t i = 0;
    for (; i + kLanes <= a.size(); i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) compare(lane, a[i + lane], b[i + lane]);
    }
    for (; i < a.size(); ++i) compare(0, a[i], b[i]);
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  };
  const double plain = compare_all();
  DifferenceTally run;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    run.add({differ[lane], lost[lane], greatest[lane], {}});
  // A second pass, only where the plain sum of squares is out of range.
  run.squares = square_sum(run.max_difference, plain, [&](double of_scale) {
    sums.fill(0);
    factor = of_scale;
    return compare_all();
  });
  add(run);
}

void DifferenceTally::add(const DifferenceTally& other) {
  differing += other.differing;
  not_finite += other.not_finite;
  max_difference = std::max(max_difference, other.max_difference);
  squares.add(other.squares);
}

template void DifferenceTally::add(std::span<const double>, std::span<const double>);
template void DifferenceTally::add(std::span<const std::complex<double>>,
                                   std::span<const std::complex<double>>);
template void DifferenceTally::add(std::span<const std::int64_t>, std::span<const std::int64_t>);
template void DifferenceTally::add(std::span<const std::uint64_t>, std::span<const std::uint64_t>);

}  // namespace thalia::model
