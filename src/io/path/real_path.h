// Where a path leads once its links are followed, for callers that must stay within a folder.
#pragma once

#include <filesystem>
#include <optional>

namespace thalia::io {

/// Follows the last name for as long as it is a link, even to something that does not exist. The
/// result is no link, or does not exist. @throws IoError: ELOOP after as many as the kernel
/// follows.
std::filesystem::path follow_links(std::filesystem::path path);

/// The absolute path, without links, `.` and `..`, of something that exists or could be made: only
/// its folder has to exist. @throws IoError, ENOENT if the folder is missing.
std::filesystem::path real_path(const std::filesystem::path& path);

/// The same of something that exists: nullopt where it does not, or may not be looked at.
/// @throws IoError if memory or descriptors are out, which says nothing of the path.
std::optional<std::filesystem::path> find_real_path(const std::filesystem::path& path);

/// Whether the first real path is the second one, a folder, or lies below it.
bool lies_in(const std::filesystem::path& real, const std::filesystem::path& real_folder);

}  // namespace thalia::io
