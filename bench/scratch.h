// Folders and files that benchmarks work on.
#pragma once

#include <cstdint>
#include <filesystem>

#include "measure/disk.h"
#include "measure/payload.h"

namespace thalia::bench {

/// @throws Skipped where `parent` does not exist or cannot be written to.
struct ScratchFolder : measure::ScratchFolder {
  explicit ScratchFolder(const std::filesystem::path& parent);
};

/// True for a file system without a disk under it.
bool is_in_memory(const std::filesystem::path& folder);

/// Waits until the disk has nothing left to do, and leaves `bytes` of memory for its page cache.
void ready_to_write(const std::filesystem::path& folder, std::uint64_t bytes);

}  // namespace thalia::bench
