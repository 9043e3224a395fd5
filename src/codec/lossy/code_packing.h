// Codes of a few bits each as one stream of bits. docs/format/format.md, "quantized".
#pragma once

#include <cstdint>
#include <span>

#include "thalia/types.h"

namespace thalia::codec {

/// Bytes that `count` codes of 0 to 8 bits take. The product must not overflow.
constexpr std::uint64_t packed_bytes(std::uint64_t count, unsigned bits) noexcept {
  return count / 8 * bits + (count % 8 * bits + 7) / 8;
}

/// Code i takes bits i×bits to i×bits + bits - 1 of the stream, lowest first, bit j being bit j mod
/// 8 of byte j / 8; what is left of the last byte is zero. `packed` has packed_bytes() bytes, each
/// code is less than 2^bits, and bits is 1 to 8. The two must not overlap.
void pack_codes(unsigned bits, std::span<const std::uint8_t> codes, MutableByteSpan packed);

/// The inverse of pack_codes(). Bits after the last code are ignored.
void unpack_codes(unsigned bits, ByteSpan packed, std::span<std::uint8_t> codes);

}  // namespace thalia::codec
