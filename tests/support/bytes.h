// Bytes of tests: reproducible ones, and the hexadecimal form of digests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "thalia/types.h"

namespace thalia::test {

/// `count` bytes that look random and are the same everywhere (Knuth's 64-bit linear congruential
/// generator, MMIX, top bytes).
inline std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed = 1) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(seed >> 56);
  }
  return bytes;
}

/// By memcmp: tests are not optimized, and the library's comparisons of std::byte take one at a
/// time.
inline bool same_bytes(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

inline std::string hex(ByteSpan bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}
inline std::string hex(const Digest128& digest) {
  return hex(as_byte_span(digest.bytes));
}
inline std::string hex(const Digest256& digest) {
  return hex(as_byte_span(digest.bytes));
}

}  // namespace thalia::test
