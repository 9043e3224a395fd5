// A text file to which whole lines are added, and which a crash leaves with whole lines and at most
// one that is torn.
#pragma once

#include <string>
#include <string_view>

#include "io/folder/folder.h"
#include "thalia/options.h"

namespace thalia::io {

/// Adds `lines`, each of which ends in a line end, after what is there; a torn line at the end
/// gets a line end first. Makes the file if there is none, and syncs it, and its folder if the
/// file is new, as the durability says. One writer at a time. @throws IoError; UsageError
/// (bad_argument) if the name is a link, or of no regular file.
void append_lines(const Folder& folder, const std::string& name, std::string_view lines,
                  Durability durability);

}  // namespace thalia::io
