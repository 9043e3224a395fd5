// Counting and measuring differences between two runs of elements.
#pragma once

#include <complex>
#include <cstdint>
#include <span>

#include "base/square_sum.h"

namespace thalia::model {

/// Sums over some of the elements. Added up in one order, they do not depend on threads.
struct DifferenceTally {
  std::uint64_t differing = 0;
  std::uint64_t not_finite = 0;
  double max_difference = 0;
  SquareSum squares{};

  /// Two runs of one length.
  template <typename T>
  void add(std::span<const T> a, std::span<const T> b);
  void add(const DifferenceTally& other);
};

extern template void DifferenceTally::add(std::span<const double>, std::span<const double>);
extern template void DifferenceTally::add(std::span<const std::complex<double>>,
                                          std::span<const std::complex<double>>);
extern template void DifferenceTally::add(std::span<const std::int64_t>,
                                          std::span<const std::int64_t>);
extern template void DifferenceTally::add(std::span<const std::uint64_t>,
                                          std::span<const std::uint64_t>);

}  // namespace thalia::model
