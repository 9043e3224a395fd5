// A sparse_delta lists elements in blocks of 65,536, so that a position takes 16 bits and any part
// of a tensor is patched without a walk over the list before it. Positions ascend, which makes
// them unique and lets put_listed() search for the first one that it needs. Pointers and positions
// are checked before they address memory. docs/format/deltas.md, "sparse_delta".
#include "container/read/sparse_delta.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "container/file/zero_padding.h"
#include "format/delta.h"
#include "format/payload.h"
#include "thalia/types.h"

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

// `shift` turns the number of an element in its block into its place in `out`. It may be negative
// and has wrapped then; the sum wraps back, as each place lies in `out`.
template <unsigned kWidth>
void put_values(std::span<const std::uint16_t> positions, const std::byte* values,
                std::uint64_t shift, std::byte* out) {
  for (std::size_t i = 0; i < positions.size(); ++i)
    std::memcpy(out + (shift + positions[i]) * kWidth, values + i * kWidth, kWidth);
}

}  // namespace

void check_block_pointers(const format::TensorEntry& entry,
                          std::span<const std::uint64_t> pointers) {
  std::uint64_t at = 0;
  for (std::size_t b = 0; b < pointers.size(); ++b) {
    const std::uint64_t pointer = pointers[b];
    const bool last = b + 1 == pointers.size();
    if (pointer < at || pointer > entry.nnz || (b == 0 && pointer != 0) ||
        (last && pointer != entry.nnz)) {
      fail_at(entry, "block_pointers", fmt::format("{} of block {}", pointer, b),
              fmt::format("from 0 to nnz {}, never less than the one before",
                          std::uint64_t{entry.nnz}));
    }
    // Positions of a block are distinct, so it cannot list more elements than it has.
    if (pointer - at > kDeltaBlockElements) {
      fail_at(entry, "block_pointers", fmt::format("{} entries in block {}", pointer - at, b - 1),
              fmt::format("at most {}", kDeltaBlockElements));
    }
    at = pointer;
  }
}

void check_positions(const format::TensorEntry& entry, std::uint64_t block,
                     std::span<const std::uint16_t> positions) {
  const std::uint64_t elements = *shape_of(entry).element_count();
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

SparseDelta check_sparse_delta(const format::TensorEntry& entry, ByteSpan logical) {
  const DType dtype = entry.dtype;
  const auto parts = *format::sparse_delta_parts(dtype, shape_of(entry), entry.nnz);
  const SparseDelta out{.pointers = array_at<std::uint64_t>(logical, parts.pointers),
                        .positions = array_at<std::uint16_t>(logical, parts.positions),
                        .values = logical.subspan(parts.values.offset, parts.values.length),
                        .width = dtype_bits(dtype) / 8};
  check_block_pointers(entry, out.pointers);
  for (std::uint64_t b = 0; b < parts.blocks; ++b) {
    const std::uint64_t at = out.pointers[b];
    check_positions(entry, b, out.positions.subspan(at, out.pointers[b + 1] - at));
  }
  return out;
}

void check_sparse_delta_padding(const format::TensorEntry& entry, ByteSpan logical) {
  const auto parts = *format::sparse_delta_parts(entry.dtype, shape_of(entry), entry.nnz);
  require_zero_padding(logical, entry.stored_offset, parts.positions, parts.values);
}

void put_listed(std::span<const std::uint16_t> positions, ByteSpan values, unsigned width,
                std::uint64_t block, std::uint64_t begin, MutableByteSpan out) {
  const std::uint64_t origin = block * kDeltaBlockElements;
  const std::uint64_t end = begin + out.size() / width;
  const auto from = origin < begin
                        ? std::lower_bound(positions.begin(), positions.end(), begin - origin)
                        : positions.begin();
  const auto to = end - origin < kDeltaBlockElements
                      ? std::lower_bound(from, positions.end(), end - origin)
                      : positions.end();
  const std::span<const std::uint16_t> chosen(from, to);
  const std::byte* const source =
      values.data() + static_cast<std::uint64_t>(from - positions.begin()) * width;
  const std::uint64_t shift = origin - begin;
  // With a width that is known at compile time each copy is one load and one store.
  switch (width) {
    case 1:
      return put_values<1>(chosen, source, shift, out.data());
    case 2:
      return put_values<2>(chosen, source, shift, out.data());
    case 4:
      return put_values<4>(chosen, source, shift, out.data());
    case 8:
      return put_values<8>(chosen, source, shift, out.data());
    default:
      return put_values<16>(chosen, source, shift, out.data());
  }
}

}  // namespace thalia::container
