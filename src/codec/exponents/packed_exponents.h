// The codec packed_exponents: the most frequent exponents of floats in 1 to 4 bits, all other bits
// as they are. It saves less than plane_entropy, but runs at the speed of memory.
// docs/format/format.md, "packed_exponents". The bytes do not depend on the set of instructions.
#pragma once

#include <vector>

#include "codec/cpu/element_layout.h"
#include "codec/cpu/processor.h"
#include "thalia/types.h"

namespace thalia::codec {

/// Encodes `raw`, of any length, into `out`, replacing its contents.
/// @param layout a hint. Only floats of 2, 4 and 8 bytes are tried.
/// @return true if `out` is a stream that is smaller than `raw`; else `out` is a copy of `raw`.
bool packed_exponents_encode(ElementLayout layout, ByteSpan raw, std::vector<std::byte>& out,
                             VectorSet set = fastest_vector_set());

/// Decodes into exactly raw.size() bytes and never writes beyond. @throws CompressionError if
/// `stored` is not a stream of that length.
void packed_exponents_decode(ByteSpan stored, MutableByteSpan raw,
                             VectorSet set = fastest_vector_set());

}  // namespace thalia::codec
