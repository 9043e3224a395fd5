// Facts of a file of any format, without its payloads (but for version 0.1, which is read whole).
#pragma once

#include <filesystem>

#include "inspect/file_facts.h"
#include "thalia/formats/any_file.h"
#include "thalia/state/delta.h"

namespace thalia::inspect {

/// The facts of an open file, which was opened as it is stored.
DescribedFile describe_file(const AnyFile& file);
/// The facts of the file at a path. For a folder: of the model in it. For a delta: what it says
/// itself; its bases are not opened. @throws what opening the file throws.
DescribedFile describe_file(const std::filesystem::path& path, const ChainOptions& options);

}  // namespace thalia::inspect
