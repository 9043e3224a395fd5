// Texts of a run that are read and written whole: configuration, metadata, digests.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "thalia/options.h"

namespace thalia::store {

/// No text that a run keeps beside its checkpoints is longer, but for the journal.
inline constexpr std::uint64_t kMaxTextBytes = 4 << 20;

/// nullopt where there is no such file. @throws IoError; FormatError (limit_exceeded) for one of
/// more than `limit` bytes; UsageError (bad_argument) where it is no regular file.
std::optional<std::string> read_text(const std::filesystem::path& path,
                                     std::uint64_t limit = kMaxTextBytes);
/// In place of the one that is there, whole. @throws IoError.
void write_text(const std::filesystem::path& path, std::string_view text, Durability durability);

}  // namespace thalia::store
