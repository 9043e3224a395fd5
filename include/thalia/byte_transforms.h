// What the codecs are given, for who builds a codec of his own: bytes of equal significance side by
// side, and differences to other bytes.
//
//   std::vector<std::byte> planes(weights.size());
//   thalia::group_bytes(2, weights, planes);  // bf16: all low bytes, then all high ones
//
// docs/format/format.md, "Chunks"; docs/format/deltas.md, "xor_base".
#pragma once

#include <cstddef>

#include "thalia/types.h"

namespace thalia {

/// Byte k of little-endian word i goes to grouped[k * n + i], with n = bytes.size() / width; bytes
/// after the last whole word keep their place. Spans may begin at any address, and do not overlap.
/// @param width of a word: 2, 4 or 8 bytes. @throws UsageError (bad_argument) for another width,
/// (size_mismatch) unless both spans have the same size.
void group_bytes(std::size_t width, ByteSpan bytes, MutableByteSpan grouped);
/// The inverse of group_bytes().
void ungroup_bytes(std::size_t width, ByteSpan grouped, MutableByteSpan bytes);

/// bytes ^= other, byte by byte: the difference to a base, and with the same base the bytes again.
/// What did not change becomes zeros. @throws UsageError (size_mismatch) unless both have the same
/// size.
void xor_bytes(MutableByteSpan bytes, ByteSpan other);

}  // namespace thalia
