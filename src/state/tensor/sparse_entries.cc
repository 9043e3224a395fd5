// Entries of a tensor, by number and by position, without a copy: csr_, coo_ and values_ point into
// the tensor's bytes, which are never written. Indices are checked when the arrays are taken.

#include "state/tensor/sparse_entries.h"

#include <algorithm>
#include <utility>

namespace thalia::state {

SparseEntries::SparseEntries(Tensor tensor) : tensor_(std::move(tensor)) {
  if (tensor_.encoding() == Encoding::csr) {
    csr_ = tensor_.csr();
  } else {
    coo_ = tensor_.coo();
  }
  values_ = std::as_const(tensor_).values();
}

// The last row that begins at the entry or before it: empty rows begin at the same entry.
std::uint64_t SparseEntries::row_of(std::uint64_t entry) const {
  return std::visit(
      [&](const auto& arrays) {
        const auto& rows = arrays.row_pointers;
        const auto above = std::upper_bound(rows.begin(), rows.end(), entry);
        return static_cast<std::uint64_t>(above - rows.begin()) - 1;
      },
      csr_);
}

std::uint64_t SparseEntries::position(std::uint64_t i) const {
  std::uint64_t found;
  positions(i, {&found, 1});
  return found;
}

void SparseEntries::positions(std::uint64_t first, std::span<std::uint64_t> out) const {
  if (out.empty()) return;
  const Shape& shape = tensor_.shape();
  if (tensor_.encoding() == Encoding::csr) {
    std::uint64_t row = row_of(first);
    std::visit(
        [&](const auto& arrays) {
          for (std::uint64_t i = 0; i < out.size(); ++i) {
            while (arrays.row_pointers[row + 1] <= first + i) ++row;
            out[i] = row * shape[1] + arrays.column_indices[first + i];
          }
        },
        csr_);
    return;
  }
  // Dimension by dimension, as coo stores its indices: each is read as one run.
  std::fill(out.begin(), out.end(), 0);
  std::visit(
      [&](const auto& arrays) {
        for (unsigned d = 0; d < shape.rank(); ++d) {
          const auto indices = arrays.indices.subspan(d * count() + first, out.size());
          for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = out[i] * shape[d] + indices[i];
        }
      },
      coo_);
}

std::uint64_t SparseEntries::first_at(std::uint64_t wanted) const {
  // A binary search by hand: positions are computed, there is no array of them to search.
  std::uint64_t begin = 0;
  for (std::uint64_t length = count(); length > 0;) {
    const std::uint64_t half = length / 2;
    if (position(begin + half) < wanted) {
      begin += half + 1;
      length -= half + 1;
    } else {
      length = half;
    }
  }
  return begin;
}

}  // namespace thalia::state
