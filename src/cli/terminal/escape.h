// Text from a file, made safe to show on a terminal and in a one-line message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "inspect/shown_name.h"

namespace thalia::cli {

/// printable() of thalia/text.h, however long.
std::string escape(std::string_view text);
using inspect::as_utf8;
using inspect::escape_name;
using inspect::unescape_name;

/// Writes what escape() would, but for line ends, tabs and carriage returns, as \x1b, \u202e and
/// the like, and changes nothing else: of a JSON text, which holds none of the first kind, the
/// result is another spelling of the same strings.
std::string escape_unsafe(std::string_view text);
/// True where escape_unsafe(text) is another text.
bool has_unsafe(std::string_view text) noexcept;

/// Columns that a terminal gives the text: wide characters count two, combining ones none.
std::size_t display_width(std::string_view text);

}  // namespace thalia::cli
