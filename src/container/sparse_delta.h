// The elements that a sparse_delta lists, checked and applied. docs/format.md, "sparse_delta".
#pragma once

#include <cstdint>
#include <span>

#include "thalia/bytes.h"
#include "thalia/format/tensor.h"

namespace thalia::container {

/// The arrays of a payload, borrowed, in the order of the elements.
struct SparseDelta {
  std::span<const std::uint64_t> pointers;
  std::span<const std::uint16_t> positions;
  ByteSpan values;
  unsigned width = 0;  ///< bytes of an element

  /// Puts the values of elements in [begin, begin + out.size() / width) in the place of those in
  /// `out`, which holds whole elements.
  void apply(std::uint64_t begin, MutableByteSpan out) const;
};

/// Of logical bytes, aligned to 8, whose length agrees with the entry; every pointer and position
/// is checked. @throws FormatError.
SparseDelta check_sparse_delta(const format::TensorEntry& entry, ByteSpan logical);

}  // namespace thalia::container
