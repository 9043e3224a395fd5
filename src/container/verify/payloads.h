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
/// Raw bytes are read once, and once more if the checksum is one sequence over the file, and for
/// tensors whose values have rules. A copied file takes the memory of a buffer a thread, and of the
/// compressed and sparse tensors that are being checked.
void verify_payloads(const detail::OpenFile& file, const Structure& structure,
                     const VerifyOptions& options, Findings& findings);

/// Checks all that verify asks of the payload of one tensor that needs no base: digests, indices,
/// elements, unused bits. A compressed one is in memory as a whole meanwhile. @throws FormatError,
/// IntegrityError.
void check_sound_payload(const detail::OpenFile& file, const TensorView& view,
                         const format::TensorEntry& entry, unsigned threads);

}  // namespace thalia::container
