// Elements of big-endian files in the byte order of this library, and back.
#pragma once

#include <cstddef>

#include "thalia/types.h"

namespace thalia::formats {

/// Turns the bytes of each number around, in place: a complex element is two numbers. The span has
/// whole elements.
void swap_bytes(DType dtype, MutableByteSpan elements) noexcept;

}  // namespace thalia::formats
