// The reading half of verify: blocks against their leaves, tensors against their digests.
#pragma once

#include <cstdint>
#include <vector>

#include "container/findings.h"
#include "container/open_file.h"
#include "container/verify_structure.h"
#include "thalia/verify.h"

namespace thalia::container {

/// Checks the closing checksum, whatever its type. @return numbers of the blocks whose leaves
/// differ, ascending; empty for files without a block tree.
std::vector<std::uint64_t> verify_checksum(const detail::OpenFile& file,
                                           const VerifyOptions& options, Findings& findings);

/// Checks CRC-32, content hash, sparse indices and padding bits of every sound tensor, and reports
/// the bad blocks that no damaged tensor explains.
void verify_payloads(const detail::OpenFile& file, const Structure& structure,
                     const std::vector<std::uint64_t>& bad_blocks, const VerifyOptions& options,
                     Findings& findings);

}  // namespace thalia::container
