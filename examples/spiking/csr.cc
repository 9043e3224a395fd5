#include "spiking/csr.h"

#include <algorithm>
#include <functional>

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

bool is_well_formed(std::span<const std::uint32_t> row_pointers,
                    std::span<const std::uint32_t> column_indices, std::uint32_t columns) {
  if (row_pointers.empty() || row_pointers.front() != 0 ||
      row_pointers.back() != column_indices.size() || !std::ranges::is_sorted(row_pointers)) {
    return false;
  }
  for (std::size_t row = 0; row + 1 < row_pointers.size(); ++row) {
    const auto entries =
        column_indices.subspan(row_pointers[row], row_pointers[row + 1] - row_pointers[row]);
    if (entries.empty()) continue;
    if (entries.back() >= columns ||
        std::ranges::adjacent_find(entries, std::greater_equal()) != entries.end()) {
      return false;
    }
  }
  return true;
}

}  // namespace spiking
