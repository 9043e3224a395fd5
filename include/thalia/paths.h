// What the file system says of paths. The throwing functions of std::filesystem are not used
// outside of these: their errors are none of thalia/error.h.
#pragma once

#include <cstdint>
#include <filesystem>

namespace thalia {

/// Bytes of a file. @throws IoError.
std::uint64_t file_bytes(const std::filesystem::path& path);
/// True for a regular file, or a link to one; false also where that is not known.
bool is_file(const std::filesystem::path& path) noexcept;
/// True where both paths lead to one file; false also where one of them leads nowhere.
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) noexcept;
/// The absolute path, without links, "." and ".." as far as it exists. @throws IoError.
std::filesystem::path resolved_path(const std::filesystem::path& path);
/// The folder that holds, or would hold, a file of this path; "." of a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);
/// $TMPDIR, or the default in its place. @throws IoError where that is no folder.
std::filesystem::path temporary_folder();
/// @return false if there is none, or it cannot be removed.
bool remove_file(const std::filesystem::path& path) noexcept;

}  // namespace thalia
