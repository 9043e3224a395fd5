// Elements that lie anywhere in a storage, one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "thalia/types.h"

namespace thalia::formats::pt {

/// Copies the elements of a strided tensor to `out`, row by row. Their places lie in `storage`.
/// @param stride in elements; `offset` of the first, in elements.
void gather(ByteSpan storage, DType dtype, const Shape& shape,
            std::span<const std::uint64_t> stride, std::uint64_t offset, MutableByteSpan out);

/// Turns signs over: of all parts, or of the imaginary ones alone.
void negate(DType dtype, bool imaginary_alone, MutableByteSpan elements) noexcept;

}  // namespace thalia::formats::pt
