// Entries of a tensor, by number and by position, without a copy: csr_, coo_ and values_ point into
// the tensor's bytes, which are never written. Indices are checked when the arrays are taken. Then
// entries are in row-major order: where a part of the tensor begins is found by bisection, and a
// visit stops after its end.

#include "state/tensor/sparse_entries.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace thalia::state {
namespace {

template <typename Index>
void visit_csr(const CsrArrays<Index>& arrays, std::span<const SliceRange> ranges,
               const SparseEntries::Visit& visit) {
  std::array<std::uint64_t, 2> at{};
  for (at[0] = ranges[0].begin; at[0] < ranges[0].end; ++at[0]) {
    const auto columns = arrays.column_indices;
    const auto row_end =
        columns.begin() + static_cast<std::ptrdiff_t>(arrays.row_pointers[at[0] + 1]);
    auto column =
        std::lower_bound(columns.begin() + static_cast<std::ptrdiff_t>(arrays.row_pointers[at[0]]),
                         row_end, ranges[1].begin);
    for (; column != row_end && *column < ranges[1].end; ++column) {
      at[1] = *column;
      if (!visit(at, static_cast<std::uint64_t>(column - columns.begin()))) return;
    }
  }
}

template <typename Index>
void visit_coo(const CooArrays<Index>& arrays, std::uint64_t nnz,
               std::span<const SliceRange> ranges, const SparseEntries::Visit& visit) {
  const std::size_t rank = ranges.size();
  const auto index = [&](std::uint64_t entry, std::size_t d) -> std::uint64_t {
    return arrays.indices[d * nnz + entry];
  };
  // The first entry that can be inside is the first that does not lie before the ranges' first
  // corner.
  std::uint64_t low = 0;
  for (std::uint64_t high = nnz; low < high;) {
    const std::uint64_t middle = low + (high - low) / 2;
    bool before = false;
    for (std::size_t d = 0; d < rank; ++d) {
      if (index(middle, d) == ranges[d].begin) continue;
      before = index(middle, d) < ranges[d].begin;
      break;
    }
    if (before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  std::array<std::uint64_t, Shape::kMaxRank> at{};
  for (std::uint64_t entry = low; entry < nnz && index(entry, 0) < ranges[0].end; ++entry) {
    bool inside = true;
    for (std::size_t d = 0; d < rank; ++d) {
      at[d] = index(entry, d);
      inside = inside && at[d] >= ranges[d].begin && at[d] < ranges[d].end;
    }
    if (inside && !visit(std::span(at).first(rank), entry)) return;
  }
}

}  // namespace

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

void SparseEntries::visit(std::span<const SliceRange> ranges, const Visit& visit) const {
  const bool empty = std::any_of(ranges.begin(), ranges.end(),
                                 [](const SliceRange& range) { return range.begin == range.end; });
  if (empty) return;
  if (tensor_.encoding() == Encoding::csr) {
    std::visit([&](const auto& arrays) { visit_csr(arrays, ranges, visit); }, csr_);
  } else {
    std::visit([&](const auto& arrays) { visit_coo(arrays, count(), ranges, visit); }, coo_);
  }
}

void SparseEntries::read_dense(std::span<const SliceRange> ranges, MutableByteSpan out) const {
  const std::size_t width = dtype_bits(dtype()) / 8;
  std::memset(out.data(), 0, out.size());
  visit(ranges, [&](std::span<const std::uint64_t> at, std::uint64_t entry) {
    std::uint64_t element = 0;
    for (std::size_t d = 0; d < ranges.size(); ++d) {
      element = element * (ranges[d].end - ranges[d].begin) + (at[d] - ranges[d].begin);
    }
    std::memcpy(out.data() + element * width, values_.data() + entry * width, width);
    return true;
  });
}

}  // namespace thalia::state
