// The filters byte_planes_2/4/8 and difference_planes_4/8: bytes of equal significance side by
// side, so that codecs find what repeats. docs/format/format.md, "Chunks". Spans may start at any
// address. Both spans of a call have the same length, which may be any, and do not overlap. The
// bytes do not depend on the set of instructions.
#pragma once

#include <cstddef>

#include "codec/cpu/processor.h"
#include "thalia/types.h"

namespace thalia::codec {

/// Byte k of word i goes to out[k * n + i], with n = raw.size() / width; the bytes after the last
/// whole word keep their place. @param width 2, 4 or 8 bytes.
void split_planes(std::size_t width, ByteSpan raw, MutableByteSpan out,
                  VectorSet set = fastest_vector_set());
/// The inverse of split_planes().
void join_planes(std::size_t width, ByteSpan planes, MutableByteSpan raw,
                 VectorSet set = fastest_vector_set());

/// Splits the differences of neighbouring little-endian words. @param width 4 or 8 bytes.
void split_difference_planes(std::size_t width, ByteSpan raw, MutableByteSpan out,
                             VectorSet set = fastest_vector_set());
/// The inverse of split_difference_planes().
void join_difference_planes(std::size_t width, ByteSpan planes, MutableByteSpan raw,
                            VectorSet set = fastest_vector_set());

}  // namespace thalia::codec
