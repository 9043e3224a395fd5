// The tensors of a file of version 0.1, for those who only look: conversions go through its
// migration.
#pragma once

#include <filesystem>
#include <memory>

#include "interop/shared/opened_file.h"

namespace thalia::interop {

/// Reads the whole file. A tensor's name is its region's and its path there, with a dot between.
std::shared_ptr<const OpenedFile> open_original_source(const std::filesystem::path& path,
                                                       const OpenOptions& options);

}  // namespace thalia::interop
