// Decodes by hand what simdjson refuses: escapes of lone surrogates. A pair of surrogates becomes
// one character of four bytes; a lone one becomes the three bytes that UTF-8 would give it if it
// might.
#include "json/unescape.h"

#include <charconv>
#include <cstdint>

namespace thalia::json {
namespace {

constexpr bool is_high_surrogate(std::uint32_t unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
constexpr bool is_low_surrogate(std::uint32_t unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

// The four digits of "\uXXXX" at the front.
std::optional<std::uint32_t> utf16_unit(std::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return std::nullopt;
  std::uint32_t unit = 0;
  const char* end = text.data() + 6;
  const auto [stopped, error] = std::from_chars(text.data() + 2, end, unit, 16);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return unit;
}

void append_code_point(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6));
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

// The character that stands for "\c"; 0 if none does.
constexpr char simple_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

}  // namespace

std::optional<std::string> unescape_wtf8(std::string_view escaped) {
  std::string out;
  out.reserve(escaped.size());
  while (true) {
    const std::size_t plain = escaped.find('\\');
    out += escaped.substr(0, plain);
    if (plain == std::string_view::npos) return out;
    escaped.remove_prefix(plain);
    if (escaped.size() < 2) return std::nullopt;
    if (const char simple = simple_escape(escaped[1])) {
      out += simple;
      escaped.remove_prefix(2);
      continue;
    }
    auto code = utf16_unit(escaped);
    if (!code) return std::nullopt;
    escaped.remove_prefix(6);
    // What follows a high surrogate is looked at, and taken only if it is a low one.
    if (is_high_surrogate(*code)) {
      const auto low = utf16_unit(escaped);
      if (low && is_low_surrogate(*low)) {
        code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
        escaped.remove_prefix(6);
      }
    }
    append_code_point(out, *code);
  }
}

}  // namespace thalia::json
