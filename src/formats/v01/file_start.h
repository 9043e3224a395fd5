// The first bytes of what a file holds, inside its frame if it has one: they tell what it is.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include "thalia/types.h"
#include "thalia/version.h"

namespace thalia::formats {

/// Enough for magic and version of every kind of .thalia file.
inline constexpr std::size_t kFileStartBytes = 16;

/// Up to kFileStartBytes, less of a shorter file. @throws IoError; FormatError where the frame is
/// broken.
std::vector<std::byte> read_file_start(const std::filesystem::path& path);
/// The same of an open file. `path` is for messages.
std::vector<std::byte> read_file_start(int fd, const std::filesystem::path& path);

/// What such bytes tell: read_format_version().
std::optional<FormatVersion> version_in(ByteSpan start);

}  // namespace thalia::formats
