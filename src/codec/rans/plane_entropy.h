// The codec plane_entropy: elements are cut into bytes, and each plane of bytes of equal
// significance is stored as it is, as one value, or coded by its frequencies. It is for checkpoints
// that should be small and are still read at the speed of a disk. docs/format/format.md,
// "plane_entropy". The bytes do not depend on the set of instructions.
#pragma once

#include <vector>

#include "codec/cpu/element_layout.h"
#include "codec/cpu/processor.h"
#include "thalia/types.h"

namespace thalia::codec {

/// Encodes `raw`, of any length, into `out`, replacing its contents. More than 2 GiB are not
/// compressed.
/// @param layout a hint: floats are rotated so that their exponents are bytes.
/// @return true if `out` is a stream that is smaller than `raw`; else `out` is a copy of `raw`.
bool plane_entropy_encode(ElementLayout layout, ByteSpan raw, std::vector<std::byte>& out,
                          VectorSet set = fastest_vector_set());

/// Decodes into exactly raw.size() bytes and never writes beyond. @throws CompressionError if
/// `stored` is not a stream of that length.
void plane_entropy_decode(ByteSpan stored, MutableByteSpan raw,
                          VectorSet set = fastest_vector_set());

struct CodedChunk {
  ByteSpan stored;
  MutableByteSpan raw;
};

/// The same for two, which takes less time than one after the other. @throws CompressionError of
/// either; then neither is complete.
void plane_entropy_decode_two(const CodedChunk& first, const CodedChunk& second,
                              VectorSet set = fastest_vector_set());

}  // namespace thalia::codec
