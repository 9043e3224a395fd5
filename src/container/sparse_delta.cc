#include "container/sparse_delta.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "format/payload.h"
#include "thalia/dtype.h"
#include "thalia/format/delta.h"
#include "thalia/shape.h"

namespace thalia::container {
namespace {

using format::kDeltaBlockElements;

[[noreturn]] void fail_at(const format::TensorEntry& entry, const char* field, std::string value,
                          std::string bound) {
  fail_field(ErrorCode::bad_value, "payload", field, entry.stored_offset, std::move(value),
             std::move(bound));
}

template <typename T>
std::span<const T> array_at(ByteSpan logical, format::Extent extent) {
  return {reinterpret_cast<const T*>(logical.data() + extent.offset), extent.length / sizeof(T)};
}

void check_block(const format::TensorEntry& entry, std::uint64_t block, std::uint64_t elements,
                 std::span<const std::uint16_t> positions) {
  const std::uint64_t most = std::min(kDeltaBlockElements, elements - block * kDeltaBlockElements);
  std::uint64_t least = 0;
  for (const std::uint64_t position : positions) {
    if (position < least || position >= most) {
      fail_at(entry, "positions", fmt::format("{} in block {}", position, block),
              fmt::format("{} to {}", least, most - 1));
    }
    least = position + 1;
  }
}

// `shift` is what is to be added to an element's number in the block to get its place in `out`;
// it may be below zero, which wraps.
template <unsigned kWidth>
void put_values(std::span<const std::uint16_t> positions, const std::byte* values,
                std::uint64_t shift, std::byte* out) {
  for (std::size_t i = 0; i < positions.size(); ++i)
    std::memcpy(out + (shift + positions[i]) * kWidth, values + i * kWidth, kWidth);
}

}  // namespace

SparseDelta check_sparse_delta(const format::TensorEntry& entry, ByteSpan logical) {
  std::uint64_t extents[Shape::kMaxRank];
  std::copy(std::begin(entry.shape), std::end(entry.shape), extents);
  const Shape shape(std::span<const std::uint64_t>(extents, entry.ndim));
  const auto dtype = static_cast<DType>(entry.dtype);
  const auto parts = *format::sparse_delta_parts(dtype, shape, entry.nnz);
  const SparseDelta out{.pointers = array_at<std::uint64_t>(logical, parts.pointers),
                        .positions = array_at<std::uint16_t>(logical, parts.positions),
                        .values = logical.subspan(parts.values.offset, parts.values.length),
                        .width = dtype_bits(dtype) / 8};
  const std::uint64_t elements = *shape.element_count();
  std::uint64_t at = 0;
  for (std::uint64_t b = 0; b <= parts.blocks; ++b) {
    const std::uint64_t pointer = out.pointers[b];
    const bool last = b == parts.blocks;
    if (pointer < at || pointer > entry.nnz || (b == 0 && pointer != 0) ||
        (last && pointer != entry.nnz)) {
      fail_at(entry, "block_pointers", fmt::format("{} of block {}", pointer, b),
              fmt::format("from 0 to nnz {}, never less than the one before",
                          std::uint64_t{entry.nnz}));
    }
    if (b > 0) check_block(entry, b - 1, elements, out.positions.subspan(at, pointer - at));
    at = pointer;
  }
  return out;
}

void SparseDelta::apply(std::uint64_t begin, MutableByteSpan out) const {
  const std::uint64_t end = begin + out.size() / width;
  for (std::uint64_t block = begin / kDeltaBlockElements; block * kDeltaBlockElements < end;
       ++block) {
    const std::uint64_t origin = block * kDeltaBlockElements;
    const auto listed = positions.subspan(pointers[block], pointers[block + 1] - pointers[block]);
    const auto from = origin < begin
                          ? std::lower_bound(listed.begin(), listed.end(), begin - origin)
                          : listed.begin();
    const auto to = end - origin < kDeltaBlockElements
                        ? std::lower_bound(from, listed.end(), end - origin)
                        : listed.end();
    const std::span<const std::uint16_t> chosen(from, to);
    const auto skipped = static_cast<std::uint64_t>(from - listed.begin());
    const std::byte* const source = values.data() + (pointers[block] + skipped) * width;
    const std::uint64_t shift = origin - begin;
    switch (width) {
      case 1:
        put_values<1>(chosen, source, shift, out.data());
        break;
      case 2:
        put_values<2>(chosen, source, shift, out.data());
        break;
      case 4:
        put_values<4>(chosen, source, shift, out.data());
        break;
      case 8:
        put_values<8>(chosen, source, shift, out.data());
        break;
      default:
        put_values<16>(chosen, source, shift, out.data());
    }
  }
}

}  // namespace thalia::container
