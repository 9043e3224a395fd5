// UTF-8 validity (RFC 3629): shortest forms only, no surrogates, at most U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

#include "thalia/text.h"

namespace thalia {

/// Offset of the first byte that belongs to no valid character, or npos.
std::size_t find_invalid_utf8(std::string_view text) noexcept;
inline bool is_valid_utf8(std::string_view text) noexcept {
  return find_invalid_utf8(text) == std::string_view::npos;
}

/// The longest prefix of at most `limit` bytes that does not end inside a character of valid UTF-8.
std::string_view utf8_prefix(std::string_view text, std::size_t limit) noexcept;

}  // namespace thalia
