// latest.EXT and best.EXT: symbolic links to a checkpoint beside them, and if the file system
// has no links a text with the name, latest.txt. docs/format/store.md, "Links".
#pragma once

#include <optional>
#include <string>

#include "io/folder/folder.h"
#include "store/run/run_files.h"

namespace thalia::store {

/// The name that `pointer` leads to; nullopt if there is none, or it leads out of the folder.
std::optional<std::string> read_pointer(const io::Folder& folder, const std::string& pointer,
                                        const std::string& extension);

/// Puts it in place of the one there was, in one step; the folder is left to be synced. @return
/// false if the file system has no links, and a text was written.
bool write_pointer(const RunFiles& files, const io::Folder& folder, const std::string& pointer,
                   const std::string& extension, const std::string& file, Durability durability);

void remove_pointer(const io::Folder& folder, const std::string& pointer,
                    const std::string& extension);

}  // namespace thalia::store
