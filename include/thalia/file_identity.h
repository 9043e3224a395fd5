// What tells a .thalia file from every other: what a delta names its base by.
#pragma once

#include <cstdint>

#include "thalia/bytes.h"

namespace thalia {

/// As the save that wrote the file knows it, and the file's header says.
struct FileIdentity {
  Digest256 closing_checksum;
  Uuid file_uuid{};
  std::uint64_t generation = 0;   ///< 1 or more; 0 is no file's
  std::uint64_t file_length = 0;  ///< in bytes; of a delta, of its container
  std::uint64_t training_steps = 0;
  unsigned depth = 0;  ///< deltas from here down to a full file
};

/// The digests of a tensor's logical bytes. docs/format/format.md, "CRC-32" and "Content hash".
struct TensorDigest {
  std::uint32_t crc32 = 0;
  Digest128 content_hash;
};

}  // namespace thalia
