#include "base/utf8.h"

#include <fmt/format.h>

#include <cstdint>

namespace thalia {
namespace {

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

// Length of the valid character at the front of `text`, or 0.
std::size_t character_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  std::size_t length;
  unsigned char low =
      0x80;  // bounds of the second byte: they exclude long forms, surrogates and what is too large
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (text.size() < length || at(1) < low || at(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (!is_continuation(at(i))) return 0;
  }
  return length;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string_view utf8_prefix(std::string_view text, std::size_t limit) noexcept {
  if (text.size() <= limit) return text;
  while (limit > 0 && is_continuation(static_cast<unsigned char>(text[limit]))) --limit;
  return text.substr(0, limit);
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool plain = length > 1 || (length == 1 && byte >= 0x20 && byte != 0x7F);
    const std::string piece =
        plain ? std::string(text.substr(at, length)) : fmt::format("\\x{:02x}", byte);
    if (out.size() + piece.size() > limit) return out + "…";
    out += piece;
    at += plain ? length : 1;
  }
  return out;
}

}  // namespace thalia
