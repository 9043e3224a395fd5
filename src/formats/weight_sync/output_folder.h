// Folders of a few files that are read together, of which the last tells that all are there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string_view>

#include "thalia/options.h"

namespace thalia::formats::weight_sync {

/// What is there of an older writing must never be read as part of this one. @param names the last
/// file first. @throws UsageError (exists) unless `replace`; IoError.
void remove_older(const std::filesystem::path& folder,
                  std::initializer_list<std::string_view> names, bool replace);

/// @return its bytes. @throws as OutputFile.
std::uint64_t write_text(const std::filesystem::path& file, std::string_view text,
                         const OutputOptions& output, const Work& work);

}  // namespace thalia::formats::weight_sync
