// The one pass of verify over a file's bytes: leaves of blocks, and CRC-32 and content hash of what
// is stored raw, while the bytes are in the cache.
#pragma once

#include <cstdint>
#include <vector>

#include "container/file/open_file.h"
#include "container/verify/findings.h"
#include "container/verify/structure.h"
#include "integrity/content_hash.h"
#include "thalia/verify.h"

namespace thalia::container {

struct RawDigest {
  bool taken = false;  ///< of a tensor stored raw that overlaps no other
  integrity::ContentDigest digest;
  bool unread = false;  ///< there is no digest, as bytes of it or near it could not be read
};

struct PayloadScan {
  std::vector<std::uint64_t> bad_blocks;  ///< whose leaves differ, ascending
  std::vector<RawDigest> digests;         ///< in the order of Structure::tensors
};

/// Reads [0, integrity_offset) once, on several threads; a copied file's bytes pass through a
/// buffer a thread. Bytes that cannot be read go to `findings`.
PayloadScan scan_payloads(const detail::OpenFile& file, const Structure& structure,
                          const VerifyOptions& options, Findings& findings);

}  // namespace thalia::container
