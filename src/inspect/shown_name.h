// Names of a file's contents as tools show them and take them back.
#pragma once

#include <string>
#include <string_view>

namespace thalia::inspect {

/// printable() of thalia/text.h, however long, with backslashes doubled: unescape_name() gets every
/// name back.
std::string escape_name(std::string_view name);
/// Undoes escape_name(). Text that is not an escape stays as it is.
std::string unescape_name(std::string_view text);

/// For JSON, which can hold nothing but UTF-8: the text itself, or if it is not UTF-8 what
/// printable() makes of it.
std::string as_utf8(std::string_view text);

}  // namespace thalia::inspect
