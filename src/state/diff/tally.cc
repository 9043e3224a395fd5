// Counts differences between two runs of elements. A difference that is infinite or NaN is counted
// as not finite and left out of the sums. Squares are summed with a
// scale if they would overflow or vanish (SquareSum). The order of every addition is fixed,
// whatever the compiler makes of it.

#include "state/diff/tally.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace thalia::state {
namespace {

// NaN is the same as a NaN of the same bits, and no other; what compares equal is the same.
bool same_f64_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
bool same_element(double a, double b) {
  return (int{a == b} | int{same_f64_bits(a, b)}) != 0;
}
bool same_element(std::int64_t a, std::int64_t b) {
  return a == b;
}
bool same_element(std::uint64_t a, std::uint64_t b) {
  return a == b;
}
bool same_element(std::complex<double> a, std::complex<double> b) {
  return same_element(a.real(), b.real()) && same_element(a.imag(), b.imag());
}

double element_size(double a) {
  return std::fabs(a);
}
double element_size(std::int64_t a) {
  return std::fabs(static_cast<double>(a));
}
double element_size(std::uint64_t a) {
  return static_cast<double>(a);
}
double element_size(std::complex<double> a) {
  return std::hypot(a.real(), a.imag());
}

// The product of finite numbers; for complex ones, the real part of a times the conjugate of b.
template <typename Real>
Real product(double a, double b) {
  return static_cast<Real>(a) * static_cast<Real>(b);
}
template <typename Real>
Real product(std::int64_t a, std::int64_t b) {
  return static_cast<Real>(a) * static_cast<Real>(b);
}
template <typename Real>
Real product(std::uint64_t a, std::uint64_t b) {
  return static_cast<Real>(a) * static_cast<Real>(b);
}
template <typename Real>
Real product(std::complex<double> a, std::complex<double> b) {
  return product<Real>(a.real(), b.real()) + product<Real>(a.imag(), b.imag());
}

template <typename Real>
struct PairProducts {
  Real before = 0;
  Real after = 0;
  Real both = 0;
};

template <typename Real, typename T>
PairProducts<Real> products_of(std::span<const T> a, std::span<const T> b) {
  constexpr std::size_t kLanes = 8;
  constexpr double kFinite = std::numeric_limits<double>::max();
  std::array<PairProducts<Real>, kLanes> lanes{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool finite =
        (int{element_size(a[i]) <= kFinite} & int{element_size(b[i]) <= kFinite}) != 0;
    const T x = finite ? a[i] : T{};
    const T y = finite ? b[i] : T{};
    PairProducts<Real>& lane = lanes[i % kLanes];
    lane.before += product<Real>(x, x);
    lane.after += product<Real>(y, y);
    lane.both += product<Real>(x, y);
  }
  PairProducts<Real> sum;
  for (const PairProducts<Real>& lane : lanes) {
    sum.before += lane.before;
    sum.after += lane.after;
    sum.both += lane.both;
  }
  return sum;
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
void DifferenceTally::add(std::span<const T> a, std::span<const T> b, const Tolerance& tolerance) {
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
    const bool alike = same_element(x, y);
    const double apart = alike ? 0.0 : distance(x, y);
    const bool finite = apart <= kFinite;
    const double counted = finite ? apart : 0.0;
    const bool within = apart <= tolerance.absolute + tolerance.relative * element_size(x);
    differ[lane] += (int{alike} | (int{finite} & int{within})) == 0;
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
    run.add(
        {.differing = differ[lane], .not_finite = lost[lane], .max_difference = greatest[lane]});
  // A second pass, only where the plain sum of squares is out of range.
  run.squares = square_sum(run.max_difference, plain, [&](double of_scale) {
    sums.fill(0);
    factor = of_scale;
    return compare_all();
  });
  // Those that an f64 holds without loss, as nearly all do.
  constexpr double kMost = 0x1p900, kLeast = 0x1p-900;
  const auto fits = [](double sum) { return sum <= kMost && sum >= kLeast; };
  const auto is_zero = [](const T& x) { return element_size(x) == 0; };
  const auto plain_products = products_of<double>(a, b);
  const bool exact = (fits(plain_products.before) || std::all_of(a.begin(), a.end(), is_zero)) &&
                     (fits(plain_products.after) || std::all_of(b.begin(), b.end(), is_zero));
  const auto products_sum =
      exact ? PairProducts<long double>{plain_products.before, plain_products.after,
                                        plain_products.both}
            : products_of<long double>(a, b);
  run.before_squares = products_sum.before;
  run.after_squares = products_sum.after;
  run.products = products_sum.both;
  add(run);
}

void DifferenceTally::add(const DifferenceTally& other) {
  differing += other.differing;
  not_finite += other.not_finite;
  max_difference = std::max(max_difference, other.max_difference);
  squares.add(other.squares);
  before_squares += other.before_squares;
  after_squares += other.after_squares;
  products += other.products;
}

template void DifferenceTally::add(std::span<const double>, std::span<const double>,
                                   const Tolerance&);
template void DifferenceTally::add(std::span<const std::complex<double>>,
                                   std::span<const std::complex<double>>, const Tolerance&);
template void DifferenceTally::add(std::span<const std::int64_t>, std::span<const std::int64_t>,
                                   const Tolerance&);
template void DifferenceTally::add(std::span<const std::uint64_t>, std::span<const std::uint64_t>,
                                   const Tolerance&);

}  // namespace thalia::state
