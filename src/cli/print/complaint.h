// The one line that a bad input gets.
#pragma once

#include <string>
#include <string_view>

namespace thalia::cli {

/// Writes "thalia: " and the text, made safe for a terminal, as one line to standard error, and
/// returns `status`.
int complain(std::string_view what, int status);
/// Writes a line that is safe already to standard error, and returns `status`.
int complain_line(std::string line, int status);

}  // namespace thalia::cli
