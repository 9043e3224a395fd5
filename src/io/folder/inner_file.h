// Files below a folder, by names that a stranger may have chosen.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/file/file_bytes.h"
#include "io/folder/folder.h"
#include "io/path/beneath.h"

namespace thalia::io {

/// The regular file that these names lead to, open for reading. @throws as open_inner_file().
UniqueFd open_inner_descriptor(const Folder& folder, std::span<const std::string> names);

/// The regular file that these names lead to, the last one its own. No link is followed, so it lies
/// in the folder. @throws UsageError (bad_argument) for names of another kind, and where a link, a
/// folder or anything else takes the place of the file; IoError.
std::shared_ptr<const FileBytes> open_inner_file(const Folder& folder,
                                                 std::span<const std::string> names, Access access);

}  // namespace thalia::io
