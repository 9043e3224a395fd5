// Names in a file are chosen by its writer, and must not move the cursor, change colours or
// reverse the order of a line. Everything here works on whole characters, and takes a byte that is
// not UTF-8 as one character, so any text comes through.
#include "cli/terminal/escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "thalia/text.h"

namespace thalia::cli {
namespace {

// White space that text and JSON are laid out with. What else a JSON string must not hold verbatim,
// JSON has escaped already.
bool is_layout(char c) {
  return c == '\n' || c == '\t' || c == '\r';
}

// Most text is passed over with one search.
std::size_t find_suspect(std::string_view text) {
  const auto is_suspect = [](char c) { return (c < ' ' || c > '~') && !is_layout(c); };
  return static_cast<std::size_t>(std::ranges::find_if(text, is_suspect) - text.begin());
}

// The character that the text begins with: its bytes, and whether they must not be shown.
struct Suspect {
  std::string_view bytes;
  char32_t code;
  bool is_valid;
  bool is_harmful;
};

Suspect suspect_of(std::string_view text) {
  const auto [code, length] = first_character(text);
  const std::string_view bytes = text.substr(0, std::max<std::size_t>(length, 1));
  return {bytes, code, length > 0, length == 0 || (is_unsafe(code) && !is_layout(text[0]))};
}

struct Range {
  char32_t first;
  char32_t last;
};

// The blocks that matter for names: East Asian scripts and pictographs are wide, marks have no
// width. Not all of Unicode, which changes every year: a misaligned column is all that is at stake.
constexpr Range kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},
                           {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                           {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                           {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
constexpr Range kCombining[] = {{0x0300, 0x036F}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                                {0x200B, 0x200D}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F},
                                {0xFE20, 0xFE2F}};

template <std::size_t N>
bool in_any(const Range (&ranges)[N], char32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const Range& range) { return c >= range.first && c <= range.last; });
}

}  // namespace

std::string escape(std::string_view text) {
  return printable(text, std::string_view::npos);
}

bool has_unsafe(std::string_view text) noexcept {
  for (std::size_t at; (at = find_suspect(text)) != text.size();) {
    const Suspect suspect = suspect_of(text.substr(at));
    if (suspect.is_harmful) return true;
    text.remove_prefix(at + suspect.bytes.size());
  }
  return false;
}

std::string escape_unsafe(std::string_view text) {
  std::string out;
  for (std::size_t at; (at = find_suspect(text)) != text.size();) {
    out += text.substr(0, at);
    const Suspect suspect = suspect_of(text.substr(at));
    if (!suspect.is_harmful) {
      out += suspect.bytes;
    } else if (suspect.is_valid && suspect.code >= 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(suspect.code));
    } else {
      out += escape(suspect.bytes);
    }
    text.remove_prefix(at + suspect.bytes.size());
  }
  return out.append(text);
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const auto [character, length] = first_character(text);
    if (!in_any(kCombining, character)) width += in_any(kWide, character) ? 2 : 1;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return width;
}

}  // namespace thalia::cli
