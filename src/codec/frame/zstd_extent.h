// How far a Zstandard frame reaches, in a sequence of them.
#pragma once

#include <cstdint>

#include "thalia/types.h"

namespace thalia::codec {

struct FrameExtent {
  std::size_t stored = 0;     ///< bytes of the frame
  std::uint64_t content = 0;  ///< bytes that it says it decodes to, not more than it could
};

/// The extent of the frame that `stored` begins with; nothing is decoded. @throws CompressionError
/// if there is no whole frame with a content size.
FrameExtent zstd_extent(ByteSpan stored);

}  // namespace thalia::codec
