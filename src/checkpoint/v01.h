// Brains in files of version 0.1, for BrainCheckpoint.
#pragma once

#include <filesystem>

#include "thalia/state/checkpoint.h"

namespace thalia::checkpoint {

/// True for a file of version 0.1, also inside a frame; false for everything else, checkpoint or
/// not. @throws IoError; FormatError where a frame is broken.
bool is_v01(const std::filesystem::path& path);

/// All regions are read at once. @throws as read_v01(); UsageError (not_found).
BrainState load_v01_brain(const std::filesystem::path& path, const BrainLoadOptions& options,
                          BrainLoadReport& report);

BrainInfo describe_v01_brain(const std::filesystem::path& path, const ReadOptions& options);

/// Reads the whole file. @throws where anything in it is wrong.
void check_v01_brain(const std::filesystem::path& path, const VerifyOptions& options);

}  // namespace thalia::checkpoint
