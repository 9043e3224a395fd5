// Which format an input file is read as.
#pragma once

#include <filesystem>

#include "thalia/formats/file_format.h"

namespace thalia::inspect {

/// By content, else by the name's ending, else thalia: opening it then says what is wrong.
FileFormat format_of(const std::filesystem::path& path);

}  // namespace thalia::inspect
