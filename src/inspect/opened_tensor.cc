#include "inspect/opened_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace thalia::inspect {

// Entries are in row-major order, which the views have checked: the beginning of a slice is found
// by bisection, and visiting stops behind its end. The views point into the tensor, which is held.

namespace {

template <typename Index>
void visit_csr(const CsrArrays<Index>& arrays, std::span<const SliceRange> ranges,
               const ShownEntries::Visit& visit) {
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
               std::span<const SliceRange> ranges, const ShownEntries::Visit& visit) {
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

ShownEntries::ShownEntries(Tensor tensor) : tensor_(std::move(tensor)) {
  arrays_ = tensor_.encoding() == Encoding::csr ? Arrays(tensor_.csr()) : Arrays(tensor_.coo());
}

void ShownEntries::visit(std::span<const SliceRange> ranges, const Visit& visit) const {
  const bool empty = std::any_of(ranges.begin(), ranges.end(),
                                 [](const SliceRange& range) { return range.begin == range.end; });
  if (empty) return;
  if (const auto* csr = std::get_if<CsrView>(&arrays_)) {
    std::visit([&](const auto& arrays) { visit_csr(arrays, ranges, visit); }, *csr);
  } else {
    std::visit([&](const auto& arrays) { visit_coo(arrays, tensor_.nnz(), ranges, visit); },
               std::get<CooView>(arrays_));
  }
}

ByteSpan ShownEntries::values() const {
  const auto values_of = [](const auto& arrays) { return arrays.values; };
  if (const auto* csr = std::get_if<CsrView>(&arrays_)) return std::visit(values_of, *csr);
  return std::visit(values_of, std::get<CooView>(arrays_));
}

void ShownEntries::read_dense(std::span<const SliceRange> ranges, MutableByteSpan out) const {
  const std::size_t width = dtype_bits(tensor_.dtype()) / 8;
  const ByteSpan stored = values();
  std::memset(out.data(), 0, out.size());
  visit(ranges, [&](std::span<const std::uint64_t> at, std::uint64_t entry) {
    std::uint64_t element = 0;
    for (std::size_t d = 0; d < ranges.size(); ++d) {
      element = element * (ranges[d].end - ranges[d].begin) + (at[d] - ranges[d].begin);
    }
    std::memcpy(out.data() + element * width, stored.data() + entry * width, width);
    return true;
  });
}

OpenedTensor::OpenedTensor(std::string of_region, std::string own_name, TensorElements elements)
    : region(std::move(of_region)),
      name(std::move(own_name)),
      layout(elements.layout),
      read(std::move(elements.read)) {
  if (!is_sparse(layout.encoding)) return;
  entries = std::make_shared<ShownEntries>(*std::move(elements.all));
  read = [entries = entries](std::span<const SliceRange> ranges, MutableByteSpan out) {
    entries->read_dense(ranges, out);
  };
}

}  // namespace thalia::inspect
