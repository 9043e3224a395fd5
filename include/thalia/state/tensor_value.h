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

  /// The logical bytes in their own encoding: of a csr tensor its three arrays. Valid until the
  /// tensor is changed, assigned to or destroyed.
  ByteSpan bytes() const noexcept { return bytes_; }
  /// Dense elements. @throws UsageError (dtype_mismatch) where T is another type, (wrong_state)
  /// where the tensor is sparse, or borrowed from an address that T cannot have.
  template <typename T>
  std::span<const T> as() const {
    check_typed(DTypeOf<T>::value, alignof(T));
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  /// The same to be written to; copies the bytes first unless they are this tensor's alone. Of a
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

}  // namespace thalia
