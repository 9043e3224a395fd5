// Numbers and digests out of hexadecimal digits; hex() of thalia/text.h goes the other way.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "thalia/types.h"

namespace thalia {

/// Reads exactly `digits` lower-case digits, at most 16; nullopt for any other text.
inline std::optional<std::uint64_t> parse_hex(std::string_view text, std::size_t digits) {
  if (text.size() != digits) return std::nullopt;
  std::uint64_t number = 0;
  for (const char digit : text) {
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && !(digit >= 'a' && digit <= 'f')) return std::nullopt;
    number = number << 4 | static_cast<std::uint64_t>(decimal ? digit - '0' : digit - 'a' + 10);
  }
  return number;
}

inline std::optional<Digest256> parse_digest(std::string_view text) {
  Digest256 digest;
  if (text.size() != 2 * sizeof digest.bytes) return std::nullopt;
  for (std::size_t i = 0; i < sizeof digest.bytes; ++i) {
    const auto byte = parse_hex(text.substr(2 * i, 2), 2);
    if (!byte) return std::nullopt;
    digest.bytes[i] = static_cast<std::uint8_t>(*byte);
  }
  return digest;
}

}  // namespace thalia
