// Exclusive or of byte strings.
#pragma once

#include <cstdint>
#include <cstring>

#include "thalia/types.h"

namespace thalia {

/// out = a ^ b, byte by byte. Both have at least as many bytes as `out`, which may be
/// one of them.
inline void xor_of(ByteSpan a, ByteSpan b, MutableByteSpan out) noexcept {
  std::size_t i = 0;
  for (; i + 8 <= out.size(); i += 8) {
    std::uint64_t x;
    std::uint64_t y;
    std::memcpy(&x, a.data() + i, sizeof x);
    std::memcpy(&y, b.data() + i, sizeof y);
    x ^= y;
    std::memcpy(out.data() + i, &x, sizeof x);
  }
  for (; i < out.size(); ++i) out[i] = a[i] ^ b[i];
}

/// out ^= other, byte by byte. `other` has at least as many bytes as `out`.
inline void xor_into(MutableByteSpan out, ByteSpan other) noexcept {
  xor_of(out, other, out);
}

}  // namespace thalia
