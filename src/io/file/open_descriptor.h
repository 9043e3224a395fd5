// A regular file's bytes by its descriptor, whatever names it has.
#pragma once

#include <filesystem>
#include <memory>

#include "io/file/file_bytes.h"

namespace thalia::io {

/// As FileBytes::open(), of a regular file that is open for reading; `path` is only for messages.
std::shared_ptr<const FileBytes> open_descriptor(UniqueFd fd, const std::filesystem::path& path,
                                                 Access access);

/// The file that an open one's fd() is, as it is now. @throws IoError.
std::shared_ptr<const FileBytes> open_again(const FileBytes& file);

}  // namespace thalia::io
