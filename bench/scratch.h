// Folders and files that benchmarks work on.
#pragma once

#include <cstdint>
#include <filesystem>

#include "measure/disk.h"
#include "measure/payload.h"
#include "thalia/bytes.h"
#include "thalia/dtype.h"
#include "thalia/options.h"
#include "thalia/writer.h"

namespace thalia::bench {

/// @throws Skipped where `parent` does not exist or cannot be written to.
struct ScratchFolder : measure::ScratchFolder {
  explicit ScratchFolder(const std::filesystem::path& parent);
};

/// True for a file system without a disk behind it.
bool is_in_memory(const std::filesystem::path& folder);

/// Writes `payload` to a .thalia file, not synced unless the options say so.
SaveResult save(const std::filesystem::path& path, ByteSpan payload, DType dtype,
                std::uint64_t tensor_bytes = measure::kTensorBytes,
                const SaveOptions& options = {.output = {.durability = Durability::none}});

}  // namespace thalia::bench
