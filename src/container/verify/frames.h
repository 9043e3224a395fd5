// What reading a wrapped file leaves unchecked. docs/format/format.md, "Wrappers".
#pragma once

#include "container/verify/findings.h"
#include "io/file/file_bytes.h"
#include "thalia/verify.h"

namespace thalia::container {

/// Checks the checksums in the seek table, where it has any, for every frame that decodes. Does
/// nothing to a file that is not wrapped.
/// @param contents of the frames, as the file was opened for reading.
void verify_frames(const io::FileBytes& file, const io::FileBytes& contents,
                   const VerifyOptions& options, Findings& findings);

}  // namespace thalia::container
