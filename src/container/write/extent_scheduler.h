// Writes a file's image in one pass over the payloads: the payloads of each extent are digested,
// and the extent is hashed and written as soon as its headers and tables are complete.
// docs/contribute/design.md, "One pass".
#pragma once

#include <cstdint>
#include <functional>

#include "container/write/extent_writer.h"
#include "container/write/payload_digest.h"
#include "container/write/progress.h"
#include "thalia/options.h"

namespace thalia::container {

/// What becomes known while the image is written, and where it is.
struct LateBytes {
  /// Absolute offset of a tensor's payload header.
  std::function<std::uint64_t(std::uint32_t tensor)> header_offset;
  /// A tensor is digested: completes the header's bytes. Called by any thread, once a tensor.
  std::function<void(std::uint32_t tensor)> complete_header;
  /// From here on the image depends on all digests.
  std::uint64_t tables_offset;
  /// All tensors are digested: completes those bytes. Called once.
  std::function<void()> complete_tables;
  /// An extent is written. Called by any thread, once an extent; may be empty.
  std::function<void(std::uint64_t extent)> written{};
};

/// Writes all extents on the threads that the options say. @throws IoError, CancelledError.
void write_extents(ExtentWriter& extents, PayloadDigest& payloads, const LateBytes& late,
                   const SaveOptions& options, ProgressMeter& progress);

}  // namespace thalia::container
