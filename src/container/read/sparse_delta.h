// The elements that a sparse_delta lists, checked and applied. docs/deltas.md, "sparse_delta".
#pragma once

#include <cstdint>
#include <span>

#include "format/tensor.h"
#include "thalia/bytes.h"

namespace thalia::container {

/// The arrays of a payload, borrowed, in the order of the elements.
struct SparseDelta {
  std::span<const std::uint64_t> pointers;
  std::span<const std::uint16_t> positions;
  ByteSpan values;
  unsigned width = 0;  ///< bytes of an element
};

/// Of logical bytes, aligned to 8, whose length agrees with the entry; every pointer and position
/// is checked. @throws FormatError.
SparseDelta check_sparse_delta(const format::TensorEntry& entry, ByteSpan logical);

/// What a verifier asks besides: the padding in front of the values. @throws FormatError.
void check_sparse_delta_padding(const format::TensorEntry& entry, ByteSpan logical);

/// Its checks in parts: all pointers, which have to be as many as the shape asks for; and the
/// positions of one block. @throws FormatError.
void check_block_pointers(const format::TensorEntry& entry,
                          std::span<const std::uint64_t> pointers);
void check_positions(const format::TensorEntry& entry, std::uint64_t block,
                     std::span<const std::uint16_t> positions);

/// Puts values of a block in the place of those in `out`, which holds the whole elements from
/// number `begin` on; what lies outside of it is left out. @param values as many as positions.
void put_listed(std::span<const std::uint16_t> positions, ByteSpan values, unsigned width,
                std::uint64_t block, std::uint64_t begin, MutableByteSpan out);

}  // namespace thalia::container
