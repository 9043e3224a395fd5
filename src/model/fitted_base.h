// A base's tensor in the shape of the tensor that it is the base of. docs/format.md, "xor_base".
#pragma once

#include <cstdint>

#include "thalia/bytes.h"
#include "thalia/shape.h"

namespace thalia::model {

/// The bytes [begin, begin + out.size()) of a dense tensor of `shape`, each element of which is
/// that of `base` at the same index, or zero where that has none. Ranks are equal; elements are
/// `width` bytes, and begin and out.size() multiples of it.
void fit_elements(ByteSpan base, const Shape& base_shape, const Shape& shape, unsigned width,
                  std::uint64_t begin, MutableByteSpan out);

}  // namespace thalia::model
