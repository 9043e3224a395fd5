// The elements that a sparse_delta lists, checked and applied. docs/format/deltas.md,
// "sparse_delta".
#pragma once

#include <cstdint>
#include <span>

#include "format/tensor.h"
#include "thalia/types.h"

namespace thalia::container {

/// The arrays of a payload, borrowed, in the order of the elements.
struct SparseDelta {
  std::span<const std::uint64_t> pointers;
  std::span<const std::uint16_t> positions;
  ByteSpan values;
  unsigned width = 0;  ///< bytes of an element
};

/// The arrays of logical bytes that are aligned to 8 and as long as the entry says. Checks every
/// pointer and position. @throws FormatError.
SparseDelta check_sparse_delta(const format::TensorEntry& entry, ByteSpan logical);

/// What only a verifier checks: the padding before the values. @throws FormatError.
void check_sparse_delta_padding(const format::TensorEntry& entry, ByteSpan logical);

/// The checks of check_sparse_delta() in parts: all pointers, as many as the shape asks for; and
/// the positions of one block. @throws FormatError.
void check_block_pointers(const format::TensorEntry& entry,
                          std::span<const std::uint64_t> pointers);
void check_positions(const format::TensorEntry& entry, std::uint64_t block,
                     std::span<const std::uint16_t> positions);

/// Puts the values of a block in their places in `out`, which holds whole elements from number
/// `begin` on. Values whose places lie outside `out` are left out. @param values as many as
/// positions.
void put_listed(std::span<const std::uint16_t> positions, ByteSpan values, unsigned width,
                std::uint64_t block, std::uint64_t begin, MutableByteSpan out);

}  // namespace thalia::container
