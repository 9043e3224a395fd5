// A text file to which whole lines are added, and which a crash leaves with whole lines and at most
// one that is torn.
#pragma once

#include <filesystem>
#include <string_view>

#include "thalia/options.h"

namespace thalia::io {

/// Adds `lines`, each of which ends in a line end, behind what is there; a torn line at the end
/// gets a line end first. Makes the file where there is none, and syncs it, and its folder if the
/// file is new, as the durability says. One writer at a time. @throws IoError; UsageError
/// (bad_argument) where the path is no regular file.
void append_lines(const std::filesystem::path& path, std::string_view lines, Durability durability);

}  // namespace thalia::io
