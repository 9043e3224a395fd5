// Tensor: a tensor in memory, held by value. What a state is made of before it is saved and after
// it was loaded.
//
//   thalia::Tensor w = thalia::Tensor::zeros(thalia::DType::f32, {n, n});
//   std::span<float> values = w.mutable_as<float>();
//   thalia::Tensor loaded = thalia::Tensor::from(reader.region("cortex").at("w_rec"));   // no copy
//
// docs/format/format.md, "Encodings".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "thalia/options.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia {

/// Copies share their bytes; the first change of one of them gives it bytes of its own, so that a
/// copy behaves as one and costs a pointer. Bytes are owned, borrowed from the caller, or those of
/// an open file. Const access is safe from any number of threads; a Tensor that is changed is
/// externally synchronised.
class Tensor {
 public:
  /// Dense f32 of shape [0].
  Tensor();

  /// @throws UsageError (size_mismatch) where the shape has more bytes than an address space.
  static Tensor zeros(DType dtype, const Shape& shape);
  /// Dense elements, row-major, copied. @throws UsageError (size_mismatch) unless `bytes` is what
  /// dtype and shape ask for.
  static Tensor copy_of(DType dtype, const Shape& shape, ByteSpan bytes);
  template <typename T>
  static Tensor copy_of(const Shape& shape, std::span<const T> elements) {
    return copy_of(DTypeOf<T>::value, shape, std::as_bytes(elements));
  }
  /// The same of a vector or an array: copy_of({2, 2}, numbers).
  template <std::ranges::contiguous_range Elements>
  static Tensor copy_of(const Shape& shape, const Elements& elements) {
    return copy_of<std::ranges::range_value_t<Elements>>(shape, elements);
  }
  /// Sparse arrays, copied. @throws UsageError (size_mismatch, bad_argument), as Writer::add_csr
  /// and add_coo; an index that breaks the rules is found when the tensor is used.
  template <typename Index>
  static Tensor csr(DType dtype, const Shape& shape, CsrArrays<Index> arrays);
  template <typename Index>
  static Tensor coo(DType dtype, const Shape& shape, CooArrays<Index> arrays);

  /// Dense elements that stay where they are: they must outlive every copy of the tensor, and stay
  /// as they are. @throws UsageError (size_mismatch).
  static Tensor borrow(DType dtype, const Shape& shape, ByteSpan bytes);
  /// Logical bytes of any layout, kept alive by `owner`. @throws UsageError (size_mismatch).
  static Tensor adopt(const TensorLayout& layout, ByteSpan bytes,
                      std::shared_ptr<const void> owner);
  /// Bytes of its own that `fill` writes, all of them: they are not zeroed before. An exception of
  /// `fill` passes through. @throws UsageError (size_mismatch).
  static Tensor filled(const TensorLayout& layout,
                       const std::function<void(MutableByteSpan)>& fill);
  /// A tensor of an open file, which it keeps open: in the mapping if it is raw, else
  /// decompressed. Reads and verifies its bytes. @throws as TensorView::bytes() and read();
  /// FormatError (limit_exceeded) where decompressing takes more than `limits` allow, or an index
  /// is out of bounds.
  static Tensor from(const TensorView& view, const ReadLimits& limits = {});

  /// The tensor with bytes of its own: itself if it has them, else a copy of what is borrowed,
  /// adopted, or an open file's.
  Tensor owned() const;

  const TensorLayout& layout() const noexcept { return layout_; }
  DType dtype() const noexcept { return layout_.dtype; }
  const Shape& shape() const noexcept { return layout_.shape; }
  Encoding encoding() const noexcept { return layout_.encoding; }
  std::uint64_t nnz() const noexcept { return layout_.nnz; }
  bool is_dense() const noexcept { return layout_.encoding == Encoding::dense; }
  std::uint64_t element_count() const noexcept { return *layout_.shape.element_count(); }

  /// The logical bytes in their own encoding: for a csr tensor its three arrays. Valid until the
  /// tensor is changed, assigned to or destroyed.
  ByteSpan bytes() const noexcept { return bytes_; }
  /// Dense elements. @throws UsageError (dtype_mismatch) where T is another type, (wrong_state)
  /// where the tensor is sparse, or borrowed from an address that T cannot have.
  template <typename T>
  std::span<const T> as() const {
    check_typed(DTypeOf<T>::value, alignof(T));
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  /// The same to be written to; copies the bytes first unless they are this tensor's alone. For a
  /// sparse tensor: the whole payload, in which indices have to stay as they are.
  MutableByteSpan mutable_bytes();
  template <typename T>
  std::span<T> mutable_as() {
    check_typed(DTypeOf<T>::value, alignof(T));
    const MutableByteSpan own = mutable_bytes();
    return {reinterpret_cast<T*>(own.data()), own.size() / sizeof(T)};
  }

  /// The arrays of a sparse tensor, after a check of every index. @throws UsageError (wrong_state)
  /// for another encoding; FormatError on a bad index.
  CsrView csr() const;
  CooView coo() const;
  /// The value array of a csr or coo tensor, or all bytes of a dense one.
  ByteSpan values() const noexcept;

  /// The same elements in another encoding; the tensor itself if it has that one. Elements whose
  /// bits are all zero are left out: -0.0 is kept. @throws UsageError (bad_argument) for a packed
  /// dtype, a rank that the encoding does not have; FormatError on a bad index.
  Tensor to_dense() const;
  Tensor to_csr() const;
  Tensor to_coo() const;
  /// Coo, or of a matrix the smaller of csr and coo, where more than 100 elements are more than 90
  /// % zeros and the result is smaller; else, and of what is sparse already, the tensor itself.
  Tensor to_sparse_where_smaller() const;

  /// Same layout and same bytes.
  friend bool operator==(const Tensor& a, const Tensor& b) noexcept;

 private:
  struct Buffer;
  Tensor(const TensorLayout& layout, std::shared_ptr<Buffer> buffer);
  static Tensor from_pieces(const TensorLayout& layout, std::span<const ByteSpan> pieces);
  void check_typed(DType wanted, std::size_t alignment) const;

  TensorLayout layout_;
  ByteSpan bytes_;
  std::shared_ptr<Buffer> buffer_;     ///< where the bytes can be written to
  std::shared_ptr<const void> owner_;  ///< else who keeps them alive; null if they are borrowed
};

/// @cond of no use to a reader
extern template Tensor Tensor::csr(DType, const Shape&, CsrArrays<std::uint32_t>);
extern template Tensor Tensor::csr(DType, const Shape&, CsrArrays<std::uint64_t>);
extern template Tensor Tensor::coo(DType, const Shape&, CooArrays<std::uint32_t>);
extern template Tensor Tensor::coo(DType, const Shape&, CooArrays<std::uint64_t>);
/// @endcond

// What the elements of a tensor are like: their range and moments, and the numbers that training
// should not make.
//
//   const thalia::Tensor w = thalia::Tensor::zeros(thalia::DType::f32, {1024, 768});
//   const thalia::TensorStatistics of = thalia::statistics_of(w);
//   const bool broken = of.nan + of.infinite > 0;

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

/// Elements as f64. Integers above 2^53 are rounded; complex elements are their absolute values.
struct TensorStatistics {
  /// With those that a sparse tensor does not store, which are zero; at most 2^64 - 1.
  std::uint64_t elements = 0;
  std::uint64_t zeros = 0;      ///< -0 is one
  std::uint64_t subnormal = 0;  ///< not zero, and less than the least normal number of their dtype
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  // Over the finite elements; 0 if there are none.
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

/// The statistics of each tensor, on as many threads as `work` says: small tensors are read side by
/// side, a large one by several threads. The results have the same bits whatever the number of
/// threads. memory_bytes and progress do not count: it takes 2 MiB a thread. @throws what the first
/// `read` that throws does; CancelledError.
std::vector<TensorStatistics> statistics_of(std::span<const SlicedTensor> tensors,
                                            const Work& work = {});

}  // namespace thalia
