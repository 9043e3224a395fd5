// What a .thalia file says of itself, beside its tensors.
#pragma once

#include <filesystem>

#include "formats/source/opened_file.h"
#include "thalia/reader.h"

namespace thalia::formats {

/// Of a delta, what it says itself. `path` is that of the reader's file. @throws FormatError,
/// IoError.
OpenedFacts facts_of(const Reader& reader, const std::filesystem::path& path);

}  // namespace thalia::formats
