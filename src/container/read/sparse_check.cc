// Indices from a file are used to address memory, so anybody who hands them out or follows them
// runs these checks first. One pass over the arrays, no allocation. In text and not as an
// exception, as the writer blames its caller and the reader the file.
#include "container/read/sparse_check.h"

#include <fmt/format.h>

namespace thalia::container {

template <typename Index>
std::optional<std::string> find_csr_fault(const Shape& shape, std::uint64_t nnz,
                                          std::span<const Index> row_pointers,
                                          std::span<const Index> column_indices) {
  const std::uint64_t rows = shape[0];
  const std::uint64_t columns = shape[1];
  // Sizes come first. Below, no row ends after nnz, so no index outside the arrays is looked up.
  if (row_pointers.size() != rows + 1)
    return fmt::format("{} row pointers, expected {}", row_pointers.size(), rows + 1);
  if (column_indices.size() != nnz)
    return fmt::format("{} column indices, expected nnz {}", column_indices.size(), nnz);
  if (row_pointers[0] != 0)
    return fmt::format("row_pointers[0] is {}, expected 0", row_pointers[0]);
  if (row_pointers[rows] != nnz)
    return fmt::format("row_pointers[{}] is {}, expected nnz {}", rows, row_pointers[rows], nnz);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t begin = row_pointers[row];
    const std::uint64_t end = row_pointers[row + 1];
    if (end < begin || end > nnz) {
      return fmt::format("row_pointers[{}] is {}, expected {} to {}", row + 1, end, begin, nnz);
    }
    for (std::uint64_t i = begin; i < end; ++i) {
      const std::uint64_t column = column_indices[i];
      if (column >= columns)
        return fmt::format("column_indices[{}] is {}, expected below {}", i, column, columns);
      if (i > begin && column <= column_indices[i - 1]) {
        return fmt::format("column_indices[{}] is {}, expected above {} before it in row {}", i,
                           column, column_indices[i - 1], row);
      }
    }
  }
  return std::nullopt;
}

template <typename Index>
std::optional<std::string> find_coo_fault(const Shape& shape, std::uint64_t nnz,
                                          std::span<const Index> indices) {
  const unsigned rank = shape.rank();
  // A quotient, as the product of nnz and rank may overflow.
  if (nnz != 0 && indices.size() / nnz != rank)
    return fmt::format("{} indices, expected {}", indices.size(), nnz * rank);
  for (std::uint64_t i = 0; i < nnz; ++i) {
    bool above = i == 0;  // row-major order: the first dimension that differs from the entry before
                          // must be larger
    for (unsigned d = 0; d < rank; ++d) {
      const std::uint64_t index = indices[d * nnz + i];
      if (index >= shape[d]) {
        return fmt::format("index {} of dimension {} is {}, expected below {}", i, d, index,
                           shape[d]);
      }
      if (!above) {
        const std::uint64_t before = indices[d * nnz + i - 1];
        if (index < before)
          return fmt::format("entry {} is not after entry {} in row-major order", i, i - 1);
        above = index > before;
      }
    }
    if (!above) return fmt::format("entry {} has the coordinates of entry {}", i, i - 1);
  }
  return std::nullopt;
}

template std::optional<std::string> find_csr_fault(const Shape&, std::uint64_t,
                                                   std::span<const std::uint32_t>,
                                                   std::span<const std::uint32_t>);
template std::optional<std::string> find_csr_fault(const Shape&, std::uint64_t,
                                                   std::span<const std::uint64_t>,
                                                   std::span<const std::uint64_t>);
template std::optional<std::string> find_coo_fault(const Shape&, std::uint64_t,
                                                   std::span<const std::uint32_t>);
template std::optional<std::string> find_coo_fault(const Shape&, std::uint64_t,
                                                   std::span<const std::uint64_t>);

}  // namespace thalia::container
