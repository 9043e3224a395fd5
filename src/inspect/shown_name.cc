#include "inspect/shown_name.h"

#include <charconv>
#include <cstddef>

#include "thalia/text.h"

namespace thalia::inspect {
namespace {

void append_utf8(std::string& out, unsigned c) {
  const auto add = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xC0 | (c >> 6));
    add(0x80 | (c & 0x3F));
  } else {
    add(0xE0 | (c >> 12));
    add(0x80 | ((c >> 6) & 0x3F));
    add(0x80 | (c & 0x3F));
  }
}

}  // namespace

std::string escape_name(std::string_view name) {
  std::string doubled;
  for (const char c : name) doubled.append(c == '\\' ? 2 : 1, c);
  return printable(doubled, std::string_view::npos);
}

std::string unescape_name(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t taken = 1;
    const char kind = text[0] == '\\' && text.size() > 1 ? text[1] : '\0';
    const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 0;
    unsigned value = 0;
    if (kind == '\\' || kind == 'n' || kind == 't' || kind == 'r') {
      out += kind == 'n' ? '\n' : kind == 't' ? '\t' : kind == 'r' ? '\r' : '\\';
      taken = 2;
    } else if (digits > 0 && text.size() >= 2 + digits &&
               std::from_chars(text.data() + 2, text.data() + 2 + digits, value, 16).ptr ==
                   text.data() + 2 + digits) {
      if (kind == 'x') {
        out += static_cast<char>(value);
      } else {
        append_utf8(out, value);
      }
      taken = 2 + digits;
    } else {
      out += text[0];
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::string as_utf8(std::string_view text) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = first_character(rest).length;
    if (length == 0) return printable(text, std::string_view::npos);
    rest.remove_prefix(length);
  }
  return std::string(text);
}

}  // namespace thalia::inspect
