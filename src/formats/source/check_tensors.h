// How a file of any format is verified.
#pragma once

#include "container/verify/findings.h"
#include "formats/source/opened_file.h"
#include "thalia/options.h"
#include "thalia/verify.h"

namespace thalia::formats {

/// Every tensor of a file that is open; unless `quick`.
void check_tensors(const OpenedFile& source, const VerifyOptions& options,
                   container::Findings& findings);

/// How a room verifies a file. `resolve`: of a .thalia delta also all that it is based on; other
/// deltas are nothing without that. @throws what says nothing about the file: IoError,
/// UnsupportedError, CancelledError, FormatError (limit_exceeded).
using VerifyFormat = VerifyReport (*)(const io::InputFile& input, const OpenOptions& options,
                                      const VerifyOptions& verify, bool resolve);

}  // namespace thalia::formats
