// Where a path leads once its links are followed, for those who may go no further than a folder.
#pragma once

#include <filesystem>

namespace thalia::io {

/// Follows the links that the last name is, one that leads to nothing too: what is returned is no
/// link, or not there. @throws IoError: ELOOP after as many as the kernel follows.
std::filesystem::path follow_links(std::filesystem::path path);

/// The absolute path without links, `.` and `..` of something that is there, or would be: only the
/// folder that it lies in has to be. @throws IoError, ENOENT where that is missing.
std::filesystem::path real_path(const std::filesystem::path& path);

/// Whether the first real path is the second one, a folder, or lies below it.
bool lies_in(const std::filesystem::path& real, const std::filesystem::path& real_folder);

}  // namespace thalia::io
