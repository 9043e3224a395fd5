// Runs are as long as the ranges allow: a slice of whole rows is one. Products saturate where the
// extents of a sparse tensor may multiply to more than 64 bits.
#include "state/tensor/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/fail.h"
#include "state/tensor/bit_runs.h"

namespace thalia::state {

std::uint64_t range_elements(std::span<const SliceRange> ranges) {
  std::uint64_t elements = 1;
  for (const SliceRange& range : ranges) {
    if (range.begin == range.end) return 0;
    if (__builtin_mul_overflow(elements, range.end - range.begin, &elements))
      elements = ~std::uint64_t{0};
  }
  return elements;
}

std::uint64_t packed_bytes(DType dtype, std::uint64_t elements) {
  const std::uint64_t bits = dtype_bits(dtype);
  return elements / 8 * bits + (elements % 8 * bits + 7) / 8;
}

void check_slice(DType dtype, const Shape& shape, std::span<const SliceRange> ranges,
                 std::uint64_t bytes) {
  if (ranges.size() != shape.rank()) {
    fail_argument(ErrorCode::bad_argument, "slice", fmt::format("{} ranges", ranges.size()),
                  fmt::format("one for each of {} dimensions", shape.rank()));
  }
  for (unsigned d = 0; d < shape.rank(); ++d) {
    if (ranges[d].begin <= ranges[d].end && ranges[d].end <= shape[d]) continue;
    fail_argument(ErrorCode::bad_argument, fmt::format("slice, dimension {}", d),
                  fmt::format("[{}, {})", ranges[d].begin, ranges[d].end),
                  fmt::format("within [0, {})", shape[d]));
  }
  if (const std::uint64_t expected = packed_bytes(dtype, range_elements(ranges));
      bytes != expected) {
    fail_argument(ErrorCode::size_mismatch, "out", fmt::format("{} bytes", bytes),
                  std::to_string(expected));
  }
}

void for_each_run(const Shape& shape, std::span<const SliceRange> ranges,
                  const std::function<void(std::uint64_t, std::uint64_t)>& visit) {
  const std::uint64_t elements = range_elements(ranges);
  if (elements == 0) return;
  std::size_t outer = ranges.size();
  std::uint64_t run = 1;
  while (outer > 0) {
    --outer;
    run *= ranges[outer].end - ranges[outer].begin;
    if (ranges[outer].begin != 0 || ranges[outer].end != shape[static_cast<unsigned>(outer)]) break;
  }
  std::vector<std::uint64_t> at;
  for (const SliceRange& range : ranges) at.push_back(range.begin);
  for (std::uint64_t visited = 0; visited < elements; visited += run) {
    std::uint64_t first = 0;
    for (std::size_t d = 0; d < at.size(); ++d)
      first = first * shape[static_cast<unsigned>(d)] + at[d];
    visit(first, run);
    for (std::size_t d = outer; d > 0; --d) {
      if (++at[d - 1] < ranges[d - 1].end) break;
      at[d - 1] = ranges[d - 1].begin;
    }
  }
}

std::optional<ByteSpan> consecutive(DType dtype, const Shape& shape, ByteSpan bytes,
                                    std::span<const SliceRange> ranges) {
  const std::uint64_t elements = range_elements(ranges);
  if (elements == 0) return ByteSpan();
  std::uint64_t first = 0, last = 0;
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    const std::uint64_t extent = shape[static_cast<unsigned>(d)];
    first = first * extent + ranges[d].begin;
    last = last * extent + ranges[d].end - 1;
  }
  if (last - first + 1 != elements) return std::nullopt;
  const std::uint64_t bits = dtype_bits(dtype);
  const std::uint64_t begin = first * bits / 8;
  return bytes.subspan(begin, (last * bits + bits + 7) / 8 - begin);
}

void copy_slice(DType dtype, const Shape& shape, ByteSpan bytes, std::span<const SliceRange> ranges,
                MutableByteSpan out) {
  const std::uint64_t bits = dtype_bits(dtype);
  // Rows of packed elements need not begin at a byte; such tensors are small.
  if (dtype_is_packed(dtype)) std::ranges::fill(out, std::byte{0});
  std::uint64_t to = 0;
  for_each_run(shape, ranges, [&](std::uint64_t first, std::uint64_t count) {
    if (dtype_is_packed(dtype)) {
      copy_bits(bytes, first * bits, out, to, count * bits);
    } else {
      std::memcpy(out.data() + to / 8, bytes.data() + first * bits / 8, count * bits / 8);
    }
    to += count * bits;
  });
}

}  // namespace thalia::state
