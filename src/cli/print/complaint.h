// The one line that a bad input gets.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace thalia::cli {

/// Writes "thalia: " and the text, made safe for a terminal, as one line to standard error, and
/// returns `status`.
int complain(std::string_view what, int status);
/// Writes a line that is safe already to standard error, and returns `status`.
int complain_line(std::string line, int status);
/// If a file is one of several of a model, writes the line that says so, with AnyFile::lacks(). For
/// commands that show what is there.
void complain_of_lack(const std::filesystem::path& path, const std::optional<std::string>& lacks);

}  // namespace thalia::cli
