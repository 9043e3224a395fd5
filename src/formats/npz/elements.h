// Elements of arrays in the order of a .thalia file, and back.
#pragma once

#include <cstddef>

#include "thalia/types.h"

namespace thalia::formats::npz {

/// Elements of `width` bytes, of which the first index runs fastest, into row-major order. Both
/// spans have the bytes of the shape and do not overlap.
void to_row_major(ByteSpan column_major, const Shape& shape, std::size_t width,
                  MutableByteSpan row_major);
/// The way back.
void to_column_major(ByteSpan row_major, const Shape& shape, std::size_t width,
                     MutableByteSpan column_major);

}  // namespace thalia::formats::npz
