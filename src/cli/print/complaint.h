// The one line that a bad input gets.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "thalia/delta.h"
#include "thalia/formats/file_format.h"

namespace thalia::cli {

/// Writes "thalia: " and the text, made safe for a terminal, as one line to standard error, and
/// returns `status`.
int complain(std::string_view what, int status);
/// Writes a line that is safe already to standard error, and returns `status`.
int complain_line(std::string line, int status);
/// Of a file that is one of several of a model, the line that says what it lacks, for commands that
/// show what is there. @throws as inspect::lack_of_file().
void complain_of_lack(const std::filesystem::path& file, FileFormat format,
                      const ChainOptions& options);

}  // namespace thalia::cli
