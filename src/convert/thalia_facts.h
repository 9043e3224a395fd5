// What a .thalia file says of itself, beside its tensors.
#pragma once

#include "formats/source/opened_file.h"
#include "thalia/reader.h"

namespace thalia::formats {

/// The facts of an open file; for a delta, what it says itself. `file` is the reader's as it is on
/// disk. @throws FormatError, IoError.
OpenedFacts facts_of(const Reader& reader, const io::FileBytes& file);

}  // namespace thalia::formats
