// Everything that can be wrong with a file, whichever format it has.
#pragma once

#include <string>

#include "thalia/convert.h"
#include "thalia/delta.h"
#include "thalia/options.h"
#include "thalia/verify.h"

namespace thalia::inspect {

/// `resolve`: of a delta also all that it is based on. Damage is reported; what says nothing about
/// the file is thrown. @throws IoError, UnsupportedError, CancelledError; FormatError
/// (limit_exceeded).
VerifyReport verify_file(const std::string& path, FileFormat format, const ChainOptions& chain,
                         bool resolve, const VerifyOptions& options);

}  // namespace thalia::inspect
