// A tensor in memory between dense, csr and coo, docs/format/format.md, "Encodings". Index arrays
// may come from a file: csr() and coo() check every index before they give arrays out, and all that
// goes through them may trust the indices. What counts as zero is decided on bits, so that -0.0 and
// NaN are stored and a round trip through a sparse encoding keeps each bit. One exception: zeros
// that a sparse tensor stored explicitly are dropped when it goes through dense.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "base/fail.h"
#include "container/read/sparse_check.h"
#include "format/payload.h"
#include "thalia/state/tensor_value.h"

namespace thalia {
namespace {

template <typename T>
std::span<const T> array_at(ByteSpan payload, format::Extent extent) {
  return {reinterpret_cast<const T*>(payload.data() + extent.offset), extent.length / sizeof(T)};
}

void refuse(std::optional<std::string> fault) {
  if (!fault) return;
  throw FormatError(ErrorCode::bad_value, *std::move(fault),
                    {.section = "payload", .field = "indices"});
}

// Index arrays are used in place as arrays of 4 or 8 bytes, which a borrowed buffer may not allow.
void require_aligned(ByteSpan bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (address % 8 != 0) {
    fail_argument(ErrorCode::wrong_state, "bytes", fmt::format("address {:#x}", address),
                  "a multiple of 8");
  }
}

template <typename Index>
CsrArrays<Index> csr_arrays(const TensorLayout& layout, ByteSpan payload) {
  const auto parts = *format::sparse_parts(layout);
  const CsrArrays<Index> arrays{array_at<Index>(payload, parts.row_pointers),
                                array_at<Index>(payload, parts.indices),
                                payload.subspan(parts.values.offset, parts.values.length)};
  refuse(container::find_csr_fault(layout.shape, layout.nnz, arrays.row_pointers,
                                   arrays.column_indices));
  return arrays;
}

template <typename Index>
CooArrays<Index> coo_arrays(const TensorLayout& layout, ByteSpan payload) {
  const auto parts = *format::sparse_parts(layout);
  const CooArrays<Index> arrays{array_at<Index>(payload, parts.indices),
                                payload.subspan(parts.values.offset, parts.values.length)};
  refuse(container::find_coo_fault(layout.shape, layout.nnz, arrays.indices));
  return arrays;
}

// Calls visit(element, value) for each stored element: its row-major number, and where its value
// lies.
template <typename Index, typename Visit>
void visit_csr(const CsrArrays<Index>& arrays, std::uint64_t columns, std::size_t width,
               const Visit& visit) {
  for (std::uint64_t row = 0; row + 1 < arrays.row_pointers.size(); ++row) {
    for (std::uint64_t i = arrays.row_pointers[row]; i < arrays.row_pointers[row + 1]; ++i)
      visit(row * columns + arrays.column_indices[i], arrays.values.data() + i * width);
  }
}

template <typename Index, typename Visit>
void visit_coo(const CooArrays<Index>& arrays, const Shape& shape, std::uint64_t nnz,
               std::size_t width, const Visit& visit) {
  for (std::uint64_t i = 0; i < nnz; ++i) {
    std::uint64_t element = 0;
    for (unsigned d = 0; d < shape.rank(); ++d)
      element = element * shape[d] + arrays.indices[d * nnz + i];
    visit(element, arrays.values.data() + i * width);
  }
}

template <std::size_t kWidth>
bool is_zero(const std::byte* element) {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::memcpy(&low, element, std::min<std::size_t>(kWidth, 8));
  if constexpr (kWidth == 16) std::memcpy(&high, element + 8, 8);
  return (low | high) == 0;
}

// Calls visit(element, value) for each element that is not zero, until it returns false.
template <std::size_t kWidth, typename Visit>
void visit_nonzero(ByteSpan dense, const Visit& visit) {
  for (std::size_t at = 0; at < dense.size(); at += kWidth) {
    if (!is_zero<kWidth>(dense.data() + at) && !visit(at / kWidth, dense.data() + at)) return;
  }
}

template <typename Visit>
void visit_nonzero(DType dtype, ByteSpan dense, const Visit& visit) {
  switch (dtype_bits(dtype)) {
    case 8:
      return visit_nonzero<1>(dense, visit);
    case 16:
      return visit_nonzero<2>(dense, visit);
    case 32:
      return visit_nonzero<4>(dense, visit);
    case 64:
      return visit_nonzero<8>(dense, visit);
    case 128:
      return visit_nonzero<16>(dense, visit);
    default:
      fail_argument(ErrorCode::bad_argument, "dtype", std::string(dtype_name(dtype)),
                    "elements of whole bytes");
  }
}

// Elements that are not zero; nullopt once there are more than `limit`.
std::optional<std::uint64_t> count_nonzero(const Tensor& dense, std::uint64_t limit) {
  std::uint64_t count = 0;
  visit_nonzero(dense.dtype(), dense.bytes(),
                [&](std::uint64_t, const std::byte*) { return ++count <= limit; });
  if (count > limit) return std::nullopt;
  return count;
}

constexpr std::uint64_t kLargestNarrowIndex = std::numeric_limits<std::uint32_t>::max();

// Also where only nnz is that large: row pointers count entries.
bool needs_wide_indices(const Shape& shape, std::uint64_t nnz) {
  return nnz > kLargestNarrowIndex ||
         std::ranges::any_of(shape.extents(), [](auto n) { return n > kLargestNarrowIndex; });
}

template <typename Index>
Tensor csr_of_dense(const Tensor& dense, std::uint64_t nnz) {
  const Shape& shape = dense.shape();
  const std::uint64_t columns = shape[1];
  const std::size_t width = dtype_bits(dense.dtype()) / 8;
  std::vector<Index> row_pointers(shape[0] + 1);
  std::vector<Index> column_indices;
  std::vector<std::byte> values(nnz * width);
  column_indices.reserve(nnz);
  visit_nonzero(dense.dtype(), dense.bytes(), [&](std::uint64_t element, const std::byte* value) {
    // Counts per row, one place late, which the sums below turn into the beginnings of rows.
    ++row_pointers[element / columns + 1];
    std::memcpy(values.data() + column_indices.size() * width, value, width);
    column_indices.push_back(static_cast<Index>(element % columns));
    return true;
  });
  for (std::size_t row = 1; row < row_pointers.size(); ++row)
    row_pointers[row] += row_pointers[row - 1];
  return Tensor::csr<Index>(dense.dtype(), shape, {row_pointers, column_indices, values});
}

template <typename Index>
Tensor coo_of_dense(const Tensor& dense, std::uint64_t nnz) {
  const Shape& shape = dense.shape();
  const std::size_t width = dtype_bits(dense.dtype()) / 8;
  std::vector<Index> indices(nnz * shape.rank());
  std::vector<std::byte> values(nnz * width);
  std::uint64_t i = 0;
  visit_nonzero(dense.dtype(), dense.bytes(), [&](std::uint64_t element, const std::byte* value) {
    for (unsigned d = shape.rank(); d-- > 0; element /= shape[d])
      indices[d * nnz + i] = static_cast<Index>(element % shape[d]);
    std::memcpy(values.data() + i * width, value, width);
    ++i;
    return true;
  });
  return Tensor::coo<Index>(dense.dtype(), shape, {indices, values});
}

Tensor csr_with(const Tensor& dense, std::uint64_t nnz) {
  if (needs_wide_indices(dense.shape(), nnz)) return csr_of_dense<std::uint64_t>(dense, nnz);
  return csr_of_dense<std::uint32_t>(dense, nnz);
}

Tensor coo_with(const Tensor& dense, std::uint64_t nnz) {
  if (needs_wide_indices(dense.shape(), nnz)) return coo_of_dense<std::uint64_t>(dense, nnz);
  return coo_of_dense<std::uint32_t>(dense, nnz);
}

void require_encoding(Encoding encoding, Encoding wanted) {
  if (encoding == wanted) return;
  fail_argument(ErrorCode::wrong_state, "encoding", std::string(encoding_name(encoding)),
                std::string(encoding_name(wanted)));
}

// The rule of the source: "more than 90 % zeros", of more than 100 elements.
constexpr std::uint64_t kFewElements = 100;

}  // namespace

CsrView Tensor::csr() const {
  require_encoding(encoding(), Encoding::csr);
  require_aligned(bytes_);
  if (layout_.wide_indices) return csr_arrays<std::uint64_t>(layout_, bytes_);
  return csr_arrays<std::uint32_t>(layout_, bytes_);
}

CooView Tensor::coo() const {
  require_encoding(encoding(), Encoding::coo);
  require_aligned(bytes_);
  if (layout_.wide_indices) return coo_arrays<std::uint64_t>(layout_, bytes_);
  return coo_arrays<std::uint32_t>(layout_, bytes_);
}

Tensor Tensor::to_dense() const {
  if (is_dense()) return *this;
  Tensor dense = zeros(dtype(), shape());
  std::byte* out = dense.mutable_bytes().data();
  const std::size_t width = dtype_bits(dtype()) / 8;
  const auto place = [&](std::uint64_t element, const std::byte* value) {
    std::memcpy(out + element * width, value, width);
  };
  if (encoding() == Encoding::csr) {
    std::visit([&](const auto& arrays) { visit_csr(arrays, shape()[1], width, place); }, csr());
  } else {
    std::visit([&](const auto& arrays) { visit_coo(arrays, shape(), nnz(), width, place); }, coo());
  }
  return dense;
}

Tensor Tensor::to_csr() const {
  if (encoding() == Encoding::csr) return *this;
  if (shape().rank() != 2) {
    fail_argument(ErrorCode::bad_argument, "shape", shape().to_string(), "rank 2 for csr");
  }
  const Tensor dense = to_dense();
  return csr_with(dense, *count_nonzero(dense, dense.element_count()));
}

Tensor Tensor::to_coo() const {
  if (encoding() == Encoding::coo) return *this;
  if (shape().rank() == 0) {
    fail_argument(ErrorCode::bad_argument, "shape", shape().to_string(), "rank 1 and up for coo");
  }
  const Tensor dense = to_dense();
  return coo_with(dense, *count_nonzero(dense, dense.element_count()));
}

Tensor Tensor::to_sparse_where_smaller() const {
  const std::uint64_t elements = element_count();
  if (!is_dense() || dtype_is_packed(dtype()) || shape().rank() == 0 || elements <= kFewElements)
    return *this;
  // The largest count of which elements - count is more than 90 %.
  const std::uint64_t most = elements / 10 - (elements % 10 == 0 ? 1 : 0);
  const auto nnz = count_nonzero(*this, most);
  if (!nnz) return *this;
  const bool wide = needs_wide_indices(shape(), *nnz);
  const auto length = [&](Encoding encoding) {
    return format::payload_length({.dtype = dtype(),
                                   .shape = shape(),
                                   .encoding = encoding,
                                   .nnz = *nnz,
                                   .wide_indices = wide})
        .value_or(std::numeric_limits<std::uint64_t>::max());
  };
  // Only matrices have csr. It is the smaller one unless most rows have no element.
  const std::uint64_t as_coo = length(Encoding::coo);
  const bool is_csr = shape().rank() == 2 && length(Encoding::csr) <= as_coo;
  // Small elements may be shorter than an index: then dense is the smaller one even here.
  if ((is_csr ? length(Encoding::csr) : as_coo) >= bytes_.size()) return *this;
  return is_csr ? csr_with(*this, *nnz) : coo_with(*this, *nnz);
}

}  // namespace thalia
