// Text from files is hostile until it is checked. Decoding follows RFC 3629 strictly: no overlong
// forms, no surrogates, nothing above U+10FFFF. What cannot be decoded is taken as single bytes, so
// that each function gets to the end of any text.
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace thalia {
namespace {

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

}  // namespace

std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Character first_character(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  // 0xC0 and 0xC1 could begin overlong forms only, and bytes above 0xF4 nothing at all.
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {0, 0};
  char32_t code = first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(byte(i))) return {0, 0};
    code = (code << 6) | (byte(i) & 0x3F);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[length] || code > 0x10FFFF || surrogate) return {0, 0};
  return {code, length};
}

// Control characters, and those that change the direction of text, break lines or have no width:
// they can make a terminal show something other than what a name is.
bool is_unsafe(char32_t c) noexcept {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

std::size_t find_invalid_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = first_character(text.substr(at)).length;
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string_view utf8_prefix(std::string_view text, std::size_t limit) noexcept {
  if (text.size() <= limit) return text;
  // Cuts before a character that the limit would cut through.
  while (limit > 0 && is_continuation(static_cast<unsigned char>(text[limit]))) --limit;
  return text.substr(0, limit);
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    const auto [code, length] = first_character(text);
    const std::size_t before = out.size();
    if (length == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (!is_unsafe(code)) {
      out += text.substr(0, length);
    } else if (code == '\n' || code == '\t' || code == '\r') {
      out += code == '\n' ? "\\n" : code == '\t' ? "\\t" : "\\r";
    } else {
      fmt::format_to(std::back_inserter(out), "\\{}{:0{}x}", length == 1 ? 'x' : 'u',
                     static_cast<unsigned>(code), length == 1 ? 2 : 4);
    }
    if (out.size() > limit) {
      // The character that went over the limit is taken back whole, escape and all.
      out.resize(before);
      return out + "…";
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace thalia
