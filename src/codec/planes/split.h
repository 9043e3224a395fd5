// The filters byte_planes_2/4/8 and difference_planes_4/8: bytes of equal significance together, so
// that codecs find what repeats. docs/format.md, "Chunks". Spans in, spans out; any address will
// do. Both spans of a call have the same length, which may be any, and do not overlap. The bytes do
// not depend on the set of instructions.
#pragma once

#include <cstddef>

#include "codec/cpu/processor.h"
#include "thalia/bytes.h"

namespace thalia::codec {

/// Byte k of word i goes to out[k * n + i], with n = raw.size() / width; what is left behind the
/// last whole word keeps its place. @param width 2, 4 or 8 bytes.
void split_planes(std::size_t width, ByteSpan raw, MutableByteSpan out,
                  VectorSet set = fastest_vector_set());
/// The way back.
void join_planes(std::size_t width, ByteSpan planes, MutableByteSpan raw,
                 VectorSet set = fastest_vector_set());

/// The planes of each little-endian word less the one before it. @param width 4 or 8 bytes.
void split_difference_planes(std::size_t width, ByteSpan raw, MutableByteSpan out,
                             VectorSet set = fastest_vector_set());
/// The way back.
void join_difference_planes(std::size_t width, ByteSpan planes, MutableByteSpan raw,
                            VectorSet set = fastest_vector_set());

}  // namespace thalia::codec
