// Text from a file, made safe to show on a terminal and in a one-line message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thalia::cli {

/// printable() of thalia/text.h, however long.
std::string escape(std::string_view text);
/// The same with backslashes doubled, so that unescape_name gets every name back.
std::string escape_name(std::string_view name);
/// Undoes escape_name(). Text that is not an escape stays as it is.
std::string unescape_name(std::string_view text);

/// Writes what escape() would, but for line ends, tabs and carriage returns, as \x1b, \u202e and
/// the like, and changes nothing else: of a JSON text, which holds none of the first kind, the
/// result is another spelling of the same strings.
std::string escape_unsafe(std::string_view text);
/// True where escape_unsafe(text) is another text.
bool has_unsafe(std::string_view text) noexcept;

/// For JSON, which can hold nothing but UTF-8: the text itself, or escape(text) if it is not UTF-8.
std::string as_utf8(std::string_view text);

/// Columns that a terminal gives the text: wide characters count two, combining ones none.
std::size_t display_width(std::string_view text);

}  // namespace thalia::cli
