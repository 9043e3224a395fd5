// Facts of a file of any format, without its payloads (but for version 0.1, which is read whole).
#pragma once

#include <filesystem>

#include "inspect/file_facts.h"
#include "thalia/delta.h"

namespace thalia::inspect {

/// Of a folder, the model in it. Of a delta, what it says itself: its bases are not opened. @throws
/// what opening the file throws.
FileFacts describe_file(const std::filesystem::path& path, const ChainOptions& options);

}  // namespace thalia::inspect
