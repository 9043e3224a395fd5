// Text from a file, and bytes, made safe to show: on a terminal, in a log, in a message of one
// line. Names and texts come out of the library as they are in the file. Its messages need none
// of this: what(), message(), value and bound of an error, and what verify() says, are printable
// whatever they quote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace thalia {

/// Control characters, line and paragraph separators, bidirectional controls and bytes that are not
/// UTF-8 come out as `\n`, `\x1b`, `\u202e`; everything else, backslashes too, stays as it is. At
/// most `limit` bytes, and where that cuts, "…" after them. Its result passes through it unchanged.
std::string printable(std::string_view text, std::size_t limit = 200);

/// Two lower-case hexadecimal digits a byte, as digests are printed: hex(digest.bytes).
std::string hex(std::span<const std::uint8_t> bytes);

/// A number of bytes as people read it: "512 B", "1.5 KiB", "93.1 GiB".
std::string human_bytes(std::uint64_t bytes);

/// The characters that printable() escapes: they move the cursor, end a line or reorder what is
/// around them.
bool is_unsafe(char32_t character) noexcept;

struct Character {
  char32_t code;
  std::size_t length;  ///< in bytes; 0 where the first byte begins no valid character
};
/// What UTF-8 that is not empty begins with.
Character first_character(std::string_view text) noexcept;

}  // namespace thalia
