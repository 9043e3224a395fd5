// verify() of files of any format.
#pragma once

#include <filesystem>

#include "thalia/delta.h"
#include "thalia/verify.h"

namespace thalia::python {

/// Of a .thalia file all that it is based on is verified too. Limits, cancelling, what another
/// version wrote and files that cannot be opened are no findings, and are thrown. Of other formats
/// the report has no seconds.
VerifyReport verify_file(const std::filesystem::path& path, const VerifyOptions& options,
                         const ChainOptions& chain);

}  // namespace thalia::python
