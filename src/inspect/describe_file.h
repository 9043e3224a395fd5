// Facts of a file of any format, without its payloads (but for version 0.1, which is read whole).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "inspect/file_facts.h"
#include "thalia/delta.h"
#include "thalia/formats/file_format.h"

namespace thalia::inspect {

/// Of a folder, the model in it. Of a delta, what it says itself: its bases are not opened. @throws
/// what opening the file throws.
FileFacts describe_file(const std::filesystem::path& path, const ChainOptions& options);

/// Of a file that is one of several of a model, the sentence that it lacks what the others have.
/// @throws what opening a GGUF file throws: of these the file itself says it, of others the name.
std::optional<std::string> lack_of_file(const std::filesystem::path& path, FileFormat format,
                                        const ChainOptions& options);

}  // namespace thalia::inspect
