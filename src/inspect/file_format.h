// Which format an input file is read as.
#pragma once

#include <filesystem>
#include <span>

#include "thalia/convert.h"

namespace thalia::inspect {

/// All that there are; the last one is read only.
std::span<const FileFormat> all_file_formats();

/// By content, else by the name's ending, else thalia: opening it then says what is wrong.
FileFormat format_of(const std::filesystem::path& path);

}  // namespace thalia::inspect
