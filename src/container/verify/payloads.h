// The reading half of verify: blocks against their leaves, tensors against their digests.
#pragma once

#include "container/file/open_file.h"
#include "container/verify/findings.h"
#include "container/verify/structure.h"
#include "thalia/verify.h"

namespace thalia::container {

/// Checks the closing checksum, whatever its type, the leaves of all blocks, and CRC-32, content
/// hash, sparse indices and padding bits of every sound tensor. Reports the bad blocks that no
/// damaged tensor explains.
///
/// Raw bytes are read once, and once more where the checksum is one sequence over the file, and for
/// tensors whose values have rules. A copied file takes the memory of a buffer a thread, and of the
/// compressed and sparse tensors that are being checked.
void verify_payloads(const detail::OpenFile& file, const Structure& structure,
                     const VerifyOptions& options, Findings& findings);

}  // namespace thalia::container
