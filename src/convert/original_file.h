// Files of version 0.1, for those who only look: conversions go through their migration.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/source/check_tensors.h"
#include "formats/source/opened_file.h"

namespace thalia::formats {

/// Reads the whole file. A tensor's name is its region's and its path there, with a dot between;
/// with OpenOptions::as_stored its path. So opened, a delta describes itself and has no tensors.
std::shared_ptr<const OpenedFile> open_original(const io::InputFile& input,
                                                const OpenOptions& options);
VerifyReport verify_original(const io::InputFile& input, const OpenOptions& options,
                             const VerifyOptions& verify, bool resolve);

}  // namespace thalia::formats
