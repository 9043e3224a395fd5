// Copies in runs that are as long as the ranges allow: a slice of whole rows is one copy.
#include "inspect/copy_slice.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "inspect/block_cursor.h"

namespace thalia::inspect {
namespace {

// Bit by bit, as rows of packed elements need not begin at a byte; such tensors are small. The
// target must be zero.
void copy_bits(ByteSpan from, std::uint64_t from_bit, MutableByteSpan to, std::uint64_t to_bit,
               std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i, ++from_bit, ++to_bit) {
    const bool set = std::to_integer<unsigned>(from[from_bit / 8] >> (from_bit % 8)) & 1;
    if (set) to[to_bit / 8] |= std::byte{1} << (to_bit % 8);
  }
}

}  // namespace

std::uint64_t packed_bytes(DType dtype, std::uint64_t elements) {
  const std::uint64_t bits = dtype_bits(dtype);
  return elements / 8 * bits + (elements % 8 * bits + 7) / 8;
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
  if (range_elements(ranges) == 0) return;
  const std::uint64_t bits = dtype_bits(dtype);
  // One run: as many inner dimensions as are taken whole, and the range of the one around them.
  std::size_t outer = ranges.size();
  std::uint64_t run = 1;
  while (outer > 0) {
    --outer;
    run *= ranges[outer].end - ranges[outer].begin;
    if (ranges[outer].begin != 0 || ranges[outer].end != shape[static_cast<unsigned>(outer)]) break;
  }
  std::vector<std::uint64_t> at;
  for (const SliceRange& range : ranges) at.push_back(range.begin);
  if (dtype_is_packed(dtype)) std::fill(out.begin(), out.end(), std::byte{0});

  for (std::uint64_t copied = 0; copied < range_elements(ranges); copied += run) {
    std::uint64_t element = 0;
    for (std::size_t d = 0; d < at.size(); ++d)
      element = element * shape[static_cast<unsigned>(d)] + at[d];
    if (dtype_is_packed(dtype)) {
      copy_bits(bytes, element * bits, out, copied * bits, run * bits);
    } else {
      const std::uint64_t width = bits / 8;
      std::memcpy(out.data() + copied * width, bytes.data() + element * width, run * width);
    }
    for (std::size_t d = outer; d > 0; --d) {
      if (++at[d - 1] < ranges[d - 1].end) break;
      at[d - 1] = ranges[d - 1].begin;
    }
  }
}

}  // namespace thalia::inspect
