// Text that is to be read, in lines of some width.
#pragma once

#include <string>
#include <string_view>

namespace thalia::cli {

/// `text` with line breaks in place of spaces, so that no line is longer than `width`, except for a
/// line that is a single word. Line breaks in the text stay, and so do lines that begin with a
/// space.
std::string wrapped(std::string_view text, std::size_t width);

}  // namespace thalia::cli
