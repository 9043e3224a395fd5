#include "spiking/csr.h"

#include <algorithm>

namespace spiking {

RowRange row_range(std::span<const std::uint32_t> row_pointers,
                   std::span<const std::uint32_t> column_indices, std::uint32_t row,
                   std::size_t first_column, std::size_t last_column) {
  const auto begin = column_indices.begin() + row_pointers[row];
  const auto end = column_indices.begin() + row_pointers[row + std::size_t{1}];
  const auto first = std::lower_bound(begin, end, first_column);
  const auto last = std::lower_bound(first, end, last_column);
  return {static_cast<std::size_t>(first - column_indices.begin()),
          static_cast<std::size_t>(last - column_indices.begin())};
}

}  // namespace spiking
