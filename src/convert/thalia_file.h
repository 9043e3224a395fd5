// .thalia files of both versions as they are: their tables, and of a delta what comes out.
#pragma once

#include <memory>

#include "formats/source/check_tensors.h"
#include "formats/source/opened_file.h"

namespace thalia::formats {

/// With OpenOptions::as_stored as the file is, deltas too, which find their bases once a tensor
/// is read; else the state of it, with the names of formats without regions.
std::shared_ptr<const OpenedFile> open_thalia(const io::InputFile& input,
                                              const OpenOptions& options);
VerifyReport verify_thalia(const io::InputFile& input, const OpenOptions& options,
                           const VerifyOptions& verify, bool resolve);

}  // namespace thalia::formats
