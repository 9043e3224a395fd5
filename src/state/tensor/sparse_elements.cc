// The form in which sparse tensors are edited: a list of positions and values. Positions are
// computed in 64 bits, hence the check that a shape has fewer than 2^64 elements, which the format
// itself does not require of a sparse tensor. sparse_tensor() trusts its list to ascend.

#include "state/tensor/sparse_elements.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <variant>

#include "base/fail.h"

namespace thalia::state {
namespace {

constexpr std::uint64_t kLargestNarrowIndex = std::numeric_limits<std::uint32_t>::max();

// Indices stay wide once they are, so that editing a tensor back gives the same bytes.
bool has_wide_indices(const Tensor& like, const Shape& shape, std::uint64_t nnz) {
  return like.layout().wide_indices || nnz > kLargestNarrowIndex ||
         std::ranges::any_of(shape.extents(), [](auto n) { return n > kLargestNarrowIndex; });
}

template <typename Index>
Tensor csr_tensor(DType dtype, const Shape& shape, const SparseElements& elements) {
  const std::uint64_t columns = shape[1];
  std::vector<Index> row_pointers(shape[0] + 1);
  std::vector<Index> column_indices;
  column_indices.reserve(elements.positions.size());
  // Row counts first, one place late, then their sums: row r begins where the rows before it end.
  for (const std::uint64_t position : elements.positions) {
    ++row_pointers[position / columns + 1];
    column_indices.push_back(static_cast<Index>(position % columns));
  }
  for (std::size_t row = 1; row < row_pointers.size(); ++row)
    row_pointers[row] += row_pointers[row - 1];
  return Tensor::csr<Index>(dtype, shape, {row_pointers, column_indices, elements.values});
}

template <typename Index>
Tensor coo_tensor(DType dtype, const Shape& shape, const SparseElements& elements) {
  const std::size_t nnz = elements.positions.size();
  std::vector<Index> indices(nnz * shape.rank());
  for (std::size_t i = 0; i < nnz; ++i) {
    std::uint64_t rest = elements.positions[i];
    for (unsigned d = shape.rank(); d-- > 0; rest /= shape[d])
      indices[d * nnz + i] = static_cast<Index>(rest % shape[d]);
  }
  return Tensor::coo<Index>(dtype, shape, {indices, elements.values});
}

}  // namespace

std::uint64_t require_countable(const Shape& shape) {
  if (const auto count = shape.element_count()) return *count;
  fail_argument(ErrorCode::size_mismatch, "shape", shape.to_string(),
                "less than 2^64 elements in all");
}

SparseElements sparse_elements(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  require_countable(shape);
  // A dense tensor takes the way through coo, whose elements are those with any bit set.
  if (tensor.is_dense()) return sparse_elements(tensor.to_coo());
  SparseElements elements;
  elements.positions.reserve(tensor.nnz());
  const ByteSpan values = tensor.values();
  elements.values.assign(values.begin(), values.end());
  if (tensor.encoding() == Encoding::csr) {
    std::visit(
        [&](const auto& arrays) {
          for (std::uint64_t row = 0; row < shape[0]; ++row) {
            for (auto i = arrays.row_pointers[row]; i < arrays.row_pointers[row + 1]; ++i)
              elements.positions.push_back(row * shape[1] + arrays.column_indices[i]);
          }
        },
        tensor.csr());
  } else {
    std::visit(
        [&](const auto& arrays) {
          for (std::uint64_t i = 0; i < tensor.nnz(); ++i) {
            std::uint64_t position = 0;
            for (unsigned d = 0; d < shape.rank(); ++d)
              position = position * shape[d] + arrays.indices[d * tensor.nnz() + i];
            elements.positions.push_back(position);
          }
        },
        tensor.coo());
  }
  return elements;
}

Tensor sparse_tensor(const Tensor& like, const Shape& shape, const SparseElements& elements) {
  const bool wide = has_wide_indices(like, shape, elements.positions.size());
  if (like.encoding() == Encoding::csr) {
    return wide ? csr_tensor<std::uint64_t>(like.dtype(), shape, elements)
                : csr_tensor<std::uint32_t>(like.dtype(), shape, elements);
  }
  return wide ? coo_tensor<std::uint64_t>(like.dtype(), shape, elements)
              : coo_tensor<std::uint32_t>(like.dtype(), shape, elements);
}

}  // namespace thalia::state
