// A slice is a number of runs of consecutive elements, all of one length, that ascend in the file.
// Elements of packed types need not begin at a byte, so runs are counted in bits; the format packs
// from the lowest bit of a byte on, as Thalia does.
#include "interop/safetensors/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/fail.h"
#include "model/tensor/bit_runs.h"
#include "model/tensor/counted_tensor.h"

namespace thalia::interop::safetensors {
namespace {

struct Runs {
  std::uint64_t count = 1;
  std::uint64_t elements = 1;  ///< of each
  unsigned outer_rank = 0;     ///< dimensions that are stepped through
};

Runs plan_runs(const Shape& shape, std::span<const SliceRange> ranges) {
  if (ranges.size() != shape.rank()) {
    fail_argument(ErrorCode::bad_argument, "ranges", fmt::format("{} ranges", ranges.size()),
                  fmt::format("one for each of {} dimensions", shape.rank()));
  }
  for (unsigned d = 0; d < shape.rank(); ++d) {
    if (ranges[d].begin <= ranges[d].end && ranges[d].end <= shape[d]) continue;
    fail_argument(ErrorCode::bad_argument, fmt::format("ranges, dimension {}", d),
                  fmt::format("[{}, {})", ranges[d].begin, ranges[d].end),
                  fmt::format("within [0, {})", shape[d]));
  }
  // Dimensions that are taken whole, from the innermost on, join the run of the one before them.
  Runs runs{.outer_rank = shape.rank()};
  bool whole = true;
  while (runs.outer_rank > 0 && whole) {
    const unsigned d = --runs.outer_rank;
    runs.elements *= ranges[d].end - ranges[d].begin;  // at most the tensor's own count
    whole = ranges[d].begin == 0 && ranges[d].end == shape[d];
  }
  for (unsigned d = 0; d < runs.outer_rank; ++d) runs.count *= ranges[d].end - ranges[d].begin;
  return runs;
}

// Calls visit(first element, position among the runs) for each.
template <typename Visit>
void for_each_run(const Shape& shape, std::span<const SliceRange> ranges, const Runs& runs,
                  Visit visit) {
  std::array<std::uint64_t, Shape::kMaxRank> at{};
  for (unsigned d = 0; d < shape.rank(); ++d) at[d] = ranges[d].begin;
  for (std::uint64_t i = 0; i < runs.count; ++i) {
    std::uint64_t element = 0;
    for (unsigned d = 0; d < shape.rank(); ++d) element = element * shape[d] + at[d];
    visit(element, i);
    for (unsigned d = runs.outer_rank; d > 0; --d) {
      if (++at[d - 1] < ranges[d - 1].end) break;
      at[d - 1] = ranges[d - 1].begin;
    }
  }
}

}  // namespace

Tensor slice_of(const SlicedTensor& tensor, std::span<const SliceRange> ranges,
                const ReadLimits& limits) {
  const Runs runs = plan_runs(tensor.shape, ranges);
  std::array<std::uint64_t, Shape::kMaxRank> extents{};
  for (std::size_t d = 0; d < ranges.size(); ++d) extents[d] = ranges[d].end - ranges[d].begin;
  const TensorLayout layout{.dtype = tensor.dtype,
                            .shape = Shape(std::span(extents.data(), ranges.size()))};
  const std::uint64_t bits = dtype_bits(tensor.dtype);
  const std::uint64_t run_bits = runs.elements * bits;
  io::MemoryBudget budget(limits, tensor.bytes.size());
  if (runs.count == 0 || run_bits == 0)
    return model::counted_tensor(budget, "data", layout, [](MutableByteSpan) {});
  if (runs.count == 1) {
    std::uint64_t first = 0;
    for_each_run(tensor.shape, ranges, runs,
                 [&](std::uint64_t element, std::uint64_t) { first = element * bits; });
    if (first % 8 == 0 && run_bits % 8 == 0) {
      if (tensor.touch) tensor.touch(first / 8, run_bits / 8);
      return Tensor::adopt(layout, tensor.bytes.subspan(first / 8, run_bits / 8), tensor.owner);
    }
  }
  // No more than the tensor's own bytes, which lie in the file.
  return model::counted_tensor(budget, "data", layout, [&](MutableByteSpan out) {
    if (dtype_is_packed(tensor.dtype)) std::ranges::fill(out, std::byte{0});
    for_each_run(tensor.shape, ranges, runs, [&](std::uint64_t element, std::uint64_t i) {
      const std::uint64_t from = element * bits, to = i * run_bits;
      const std::uint64_t begin = from / 8, end = (from + run_bits + 7) / 8;
      if (tensor.touch) tensor.touch(begin, end - begin);
      if (dtype_is_packed(tensor.dtype)) {
        model::copy_bits(tensor.bytes, from, out, to, run_bits);
      } else {
        std::memcpy(out.data() + to / 8, tensor.bytes.data() + begin, run_bits / 8);
      }
    });
  });
}

}  // namespace thalia::interop::safetensors
