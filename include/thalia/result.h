// What the results of calls that write files have in common.
#pragma once

#include <cstdint>

#include "thalia/types.h"

namespace thalia {

/// A .thalia file that was written, or written to.
struct WriteResult {
  std::uint64_t file_bytes = 0;  ///< of the file now
  std::uint32_t regions = 0;
  std::uint32_t tensors = 0;
  Digest256 closing_checksum{};
  double seconds = 0;       ///< of the call that writes
  double sync_seconds = 0;  ///< of which waiting for the disk
};

/// A file, or a model of several, that was made of another one.
struct RewriteResult {
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
  std::uint32_t tensors = 0;  ///< of the output
  double seconds = 0;
};

}  // namespace thalia
