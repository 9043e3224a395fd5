// Counting and measuring differences between two runs of elements.
#pragma once

#include <complex>
#include <cstdint>
#include <span>

#include "base/square_sum.h"

namespace thalia::state {

/// Differences that do not count: those of at most `absolute` + `relative` x the size of the
/// element before. Infinite and NaN ones always count.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

/// Sums over some of the elements. Added up in one order, they do not depend on threads.
struct DifferenceTally {
  std::uint64_t differing = 0;
  std::uint64_t not_finite = 0;
  double max_difference = 0;
  SquareSum squares{};
  // Sums over pairs that are both finite. The squares of f64 numbers may be too large or too small
  // for an f64.
  long double before_squares = 0;
  long double after_squares = 0;
  long double products = 0;

  /// Two runs of one length.
  template <typename T>
  void add(std::span<const T> a, std::span<const T> b, const Tolerance& tolerance);
  void add(const DifferenceTally& other);
};

extern template void DifferenceTally::add(std::span<const double>, std::span<const double>,
                                          const Tolerance&);
extern template void DifferenceTally::add(std::span<const std::complex<double>>,
                                          std::span<const std::complex<double>>, const Tolerance&);
extern template void DifferenceTally::add(std::span<const std::int64_t>,
                                          std::span<const std::int64_t>, const Tolerance&);
extern template void DifferenceTally::add(std::span<const std::uint64_t>,
                                          std::span<const std::uint64_t>, const Tolerance&);

}  // namespace thalia::state
