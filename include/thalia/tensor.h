// Tensors: what a writer is told about one (TensorSpec), and the view that a reader gives
// (TensorView).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia {

std::string_view role_name(Role role) noexcept;
std::optional<Role> role_from_name(std::string_view name) noexcept;
std::string_view encoding_name(Encoding encoding) noexcept;
/// "none", "packed_exponents": the enumerator.
std::string_view codec_name(Codec codec) noexcept;

/// The fields of a layout are here with name and role, so that all are declared in one list.
struct TensorSpec {
  /// Up to 65,535 bytes of UTF-8, unique in its region. The dotted names of PyTorch are kept whole.
  std::string name;
  DType dtype = DType::f32;
  Shape shape{};
  Role role = Role::weights;
  Encoding encoding = Encoding::dense;  ///< dense, csr (rank 2) or coo
  std::uint64_t nnz = 0;                ///< stored elements of csr and coo
  /// csr and coo: u64 index arrays. Needed where a dimension, or the nnz of csr, is more than
  /// 2^32 - 1.
  bool wide_indices = false;

  static TensorSpec of(std::string name, const TensorLayout& layout, Role role = Role::weights) {
    return {.name = std::move(name),
            .dtype = layout.dtype,
            .shape = layout.shape,
            .role = role,
            .encoding = layout.encoding,
            .nnz = layout.nnz,
            .wide_indices = layout.wide_indices};
  }
  TensorLayout layout() const { return {dtype, shape, encoding, nnz, wide_indices}; }
};

/// A compressed sparse row matrix. Index is u32 or u64. values: nnz elements of the tensor's dtype.
template <typename Index>
struct CsrArrays {
  /// n_rows + 1; row r has the entries [row_pointers[r], row_pointers[r + 1]).
  std::span<const Index> row_pointers;
  std::span<const Index> column_indices;  ///< nnz
  ByteSpan values;
};
/// A coordinate list. indices: rank runs of nnz (all of dimension 0, then all of dimension 1, …),
/// in row-major order.
template <typename Index>
struct CooArrays {
  std::span<const Index> indices;
  ByteSpan values;
};
using CsrView = std::variant<CsrArrays<std::uint32_t>, CsrArrays<std::uint64_t>>;
using CooView = std::variant<CooArrays<std::uint32_t>, CooArrays<std::uint64_t>>;

/// The arrays of a quantized tensor as they lie in its file: element i of group g is minima[g] +
/// code × scales[g], rounded to the tensor's dtype. Group g has the elements from g × group_size
/// on, in row-major order; only the last one may have fewer. docs/format/format.md, "quantized".
struct QuantizedView {
  unsigned bits = 0;             ///< of every code, 1 to 8; 0: each group has a width of its own
  std::uint64_t group_size = 0;  ///< elements; all of them if there is one group
  std::uint64_t groups = 0;
  std::span<const std::uint8_t> widths{};  ///< if bits is 0: the bits of each group's codes, 0 to 8
  DType parameter_dtype = DType::f32;      ///< of minima and scales; f64 where the tensor is f64
  ByteSpan minima{};                       ///< one a group, finite
  ByteSpan scales{};                       ///< one a group, finite, 0 or more
  /// Group by group, each from a whole byte on: code i takes the bits from i × width on, the lowest
  /// bit of a byte first.
  ByteSpan codes{};
};

/// Half-open range of one dimension, in elements.
struct SliceRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

namespace detail {
class OpenFile;
}
namespace format {
struct DirectoryRegion;
struct TensorEntry;
}  // namespace format

/// One tensor of an open file. A cheap handle that keeps the file's mapping alive: spans obtained
/// through it are valid while any view, region or reader of that file lives. Immutable; any number
/// of threads may use one. docs/format/format.md, "Directory" and "Payloads".
class TensorView {
 public:
  // Described by the directory; no payload is touched.
  std::string_view name() const noexcept { return name_; }  ///< points into the mapping
  Role role() const noexcept;
  Encoding encoding() const noexcept;
  DType dtype() const noexcept;
  const Shape& shape() const noexcept { return shape_; }
  std::uint64_t element_count() const noexcept { return element_count_; }
  std::uint64_t nnz() const noexcept;
  bool wide_indices() const noexcept;
  TensorLayout layout() const { return {dtype(), shape_, encoding(), nnz(), wide_indices()}; }
  /// Bytes of the tensor in its own encoding, decompressed: for a csr tensor its three arrays.
  std::uint64_t logical_bytes() const noexcept;
  std::uint64_t stored_bytes() const noexcept;
  std::uint64_t stored_offset() const noexcept;  ///< absolute
  std::uint32_t chunk_count() const noexcept;
  std::uint32_t crc32() const noexcept;     ///< of the logical bytes
  Digest128 content_hash() const noexcept;  ///< of the logical bytes
  /// True where the logical bytes lie in the file as they are, so that bytes(), as() and csr() copy
  /// nothing.
  bool is_raw() const noexcept { return chunk_count() == 0; }
  /// The codecs of its chunks, each once, in the order of their codes; `none` of a raw tensor.
  /// Reads the directory. @throws FormatError (bad_value) for a code that is not assigned.
  std::vector<Codec> codecs() const;

  /// The logical bytes in the mapping, 64-byte aligned. Verified as ReadOptions say, which reads
  /// them.
  ///
  /// @throws UsageError (wrong_state) where !is_raw(): use read(). IntegrityError naming this
  /// tensor. UnsupportedError for a tensor that is quantized or needs a base.
  ByteSpan bytes() const;

  /// Dense elements in the mapping. @throws UsageError (dtype_mismatch) where T is not the tensor's
  /// dtype, (wrong_state) if it is not dense or not raw. IntegrityError. FormatError where a
  /// bool is neither 0 nor 1, which takes one pass over them: C++ leaves reading such a bool
  /// undefined.
  template <typename T>
  std::span<const T> as() const {
    check_typed(DTypeOf<T>::value);
    const ByteSpan raw = bytes();
    if constexpr (DTypeOf<T>::value == DType::boolean) check_booleans(raw);
    return {reinterpret_cast<const T*>(raw.data()), raw.size() / sizeof(T)};
  }

  /// Elements [begin, end) of the outermost dimension of a dense raw tensor, in the mapping; only
  /// these bytes are verified and touched. @throws as bytes(); UsageError (bad_argument) on a bad
  /// range, rank 0, or a packed dtype whose rows do not start on a byte.
  ByteSpan rows(std::uint64_t begin, std::uint64_t end) const;

  /// What RegionView does, for the stored bytes of the tensor. release() gives back whole pages
  /// only, so none that another tensor has a part of.
  void prefetch() const;
  void populate() const;
  void release() const;

  /// Copies or decompresses the logical bytes into `out`. @throws UsageError (size_mismatch) unless
  /// out.size() == logical_bytes(); IntegrityError; UnsupportedError for a codec, filter or
  /// encoding this version cannot resolve.
  void read(MutableByteSpan out) const;

  /// Copies a slice of a dense tensor, row-major and packed as the dtype is; one range a dimension.
  /// Reads the slice's bytes or, of a compressed tensor, the chunks they lie in. @throws UsageError
  /// (bad_argument, size_mismatch).
  void read_slice(std::span<const SliceRange> ranges, MutableByteSpan out) const;
  /// Bytes that read_slice fills.
  std::uint64_t slice_bytes(std::span<const SliceRange> ranges) const;

  /// Writes the tensor out densely: zeros where a sparse tensor stores nothing, and the restored
  /// elements of a quantized one. out.size() must be dense_bytes().
  void read_dense(MutableByteSpan out) const;
  std::uint64_t dense_bytes() const;

  /// The arrays of a raw csr or coo tensor in the mapping, after a check of every index (one pass
  /// over them).
  /// @throws UsageError (wrong_state) for another encoding or where !is_raw(). FormatError on a bad
  /// index.
  CsrView csr() const;
  CooView coo() const;
  /// The same of any csr or coo tensor, raw or not: read() into `storage`, which the arrays then
  /// point into. storage.size() must be logical_bytes(), its first byte 8-byte aligned.
  /// @throws as read(); UsageError (size_mismatch, bad_argument).
  CsrView csr(MutableByteSpan storage) const;
  CooView coo(MutableByteSpan storage) const;

  /// The arrays of a raw quantized tensor in the mapping, after a check of every group, for who
  /// computes with codes or restores them elsewhere. @throws UsageError (wrong_state) for another
  /// encoding or where !is_raw(). FormatError naming the array and the group; IntegrityError.
  QuantizedView quantized() const;
  /// The same of any quantized tensor, raw or not, in `storage` of logical_bytes(), its first byte
  /// 8-byte aligned. @throws as above; UsageError (size_mismatch, bad_argument).
  QuantizedView quantized(MutableByteSpan storage) const;

 private:
  friend struct detail::Inside;
  TensorView(std::shared_ptr<const detail::OpenFile> file, std::string_view region,
             const format::TensorEntry* entry);
  void check_typed(DType wanted) const;
  void check_booleans(ByteSpan raw) const;

  detail::Shared<const detail::OpenFile> file_;
  const format::TensorEntry* entry_;
  std::string_view region_;
  std::string_view name_;
  Shape shape_;
  std::uint64_t element_count_ = 0;
};

}  // namespace thalia
