// Content as independent frames with a seek table after them. docs/format/format.md, "Wrappers".
#pragma once

#include <cstdint>
#include <functional>

#include "thalia/compress.h"
#include "thalia/files.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::container {

inline constexpr std::uint64_t kMostFrameBytes = 1 << 30;

/// What becomes the content of frames.
struct FrameContent {
  std::uint64_t size = 0;
  /// Fills `out` with the bytes from `offset` on. Called by several threads at once.
  std::function<void(std::uint64_t offset, MutableByteSpan out)> read;
};

struct FrameForm {
  Codec codec = Codec::zstd;
  int level = 0;  ///< checked
  std::uint64_t frame_bytes = CompressOptions{}.frame_bytes;
  bool with_table = true;
};

/// Writes the frames, and the table. Memory is that of FrameMemory. @return how many frames.
/// @throws IoError; UsageError (bad_argument) for more frames than a table may have;
/// CancelledError; what `read` throws.
std::uint64_t write_frames(const FrameContent& source, const FrameForm& form, const Work& work,
                           OutputFile& out);

}  // namespace thalia::container
