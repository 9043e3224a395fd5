// A file that has no name and gets none: nothing of it is left, however the process ends, and
// nobody else can open it.
#pragma once

#include <filesystem>

#include "io/system/unique_fd.h"

namespace thalia::io {

/// Open for reading and writing, on the file system of `folder`, or of the temporary folder if that
/// is empty. In memory if there is no such folder, or it cannot have such a file. @throws IoError
/// if the process or the machine is out of something.
UniqueFd create_unnamed_file(const std::filesystem::path& folder);

}  // namespace thalia::io
