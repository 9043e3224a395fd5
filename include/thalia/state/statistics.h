// What the elements of a tensor are like: their range and moments, and the numbers that training
// should not make.
//
//   const thalia::Tensor w = thalia::Tensor::zeros(thalia::DType::f32, {1024, 768});
//   const thalia::TensorStatistics of = thalia::statistics_of(w);
//   const bool broken = of.nan + of.infinite > 0;
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "thalia/options.h"
#include "thalia/state/tensor_value.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia {

/// What a way of storing a tensor has lost of it.
struct TensorLoss {
  std::string region{};
  std::string name{};
  DType dtype = DType::f32;
  double bits = 0;       ///< of a code, on average
  double max_error = 0;  ///< |element that was given - what comes out|
  double rms_error = 0;
  double relative_error = 0;  ///< of what was to be stored: 0 where all of it comes back
};

/// Elements as f64, of which integers above 2^53 are rounded; of complex ones the absolute values.
struct TensorStatistics {
  /// With those that a sparse tensor does not store, which are zero; at most 2^64 - 1.
  std::uint64_t elements = 0;
  std::uint64_t zeros = 0;      ///< -0 is one
  std::uint64_t subnormal = 0;  ///< not zero, and less than the least normal number of their dtype
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  // Of the finite elements; 0 if there are none.
  double min = 0;
  double max = 0;
  double mean = 0;
  double deviation = 0;  ///< the root of the mean squared distance from the mean
  double norm = 0;       ///< the root of the sum of squares, at most the greatest f64

  std::uint64_t finite() const noexcept { return elements - nan - infinite; }
};

/// Takes elements piece by piece. Pieces may be taken by tallies of their own, which are added up
/// afterwards: in one order, for the same bits in every run. A value type.
class StatisticsTally {
 public:
  explicit StatisticsTally(DType dtype) noexcept : dtype_(dtype) {}

  /// `count` elements, row-major and packed as the dtype is, which begin with the first bit of
  /// `bytes`. @throws UsageError (size_mismatch) if they do not fill the bytes.
  void add(ByteSpan bytes, std::uint64_t count);
  void add_zeros(std::uint64_t count) noexcept;
  void add(const StatisticsTally& other) noexcept;
  TensorStatistics result() const noexcept;

 private:
  void add_block(const double* elements, std::size_t count) noexcept;
  /// Chan, Golub, LeVeque, "Algorithms for computing the sample variance", 1983.
  void merge(const TensorStatistics& counts, long double mean, long double squares) noexcept;

  DType dtype_;
  TensorStatistics counts_{};  ///< but for the moments, which result() makes of what follows
  // The squares of f64 numbers may be too large or too small for an f64.
  long double mean_ = 0;
  long double squares_ = 0;  ///< the sum of the squared distances from the mean
};

/// Measures a dense or sparse tensor.
TensorStatistics statistics_of(const Tensor& tensor);

/// Fills `out` with the elements in the ranges, one a dimension, row-major and packed as the dtype
/// is. Several threads call it.
using SliceReader = std::function<void(std::span<const SliceRange> ranges, MutableByteSpan out)>;

/// A dense tensor that is read in pieces.
struct SlicedTensor {
  DType dtype = DType::f32;
  Shape shape{};
  SliceReader read{};
};

/// Of each of them, on as many threads as `work` says: small ones are read side by side, a large
/// one by several threads. The same bits whatever their number. memory_bytes and progress do not
/// count: it takes 2 MiB a thread. @throws what the first `read` that throws does; CancelledError.
std::vector<TensorStatistics> statistics_of(std::span<const SlicedTensor> tensors,
                                            const Work& work = {});

}  // namespace thalia
