#include "codec/frame/zstd_extent.h"

#include <zstd.h>

#include "codec/frame/frame.h"
#include "codec/frame/frame_error.h"
#include "codec/frame/zstd_decoder.h"

namespace thalia::codec {

FrameExtent zstd_extent(ByteSpan stored) {
  // zstd's own functions also take skippable frames and those of its versions before 0.8.
  if (frame_kind(stored) != FrameKind::zstd) fail_frame(kZstdName, "wrong magic number");
  const auto content = zstd_content_size(stored);
  if (!content) fail_frame(kZstdName, "no content size");
  const std::size_t length = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (ZSTD_isError(length)) fail_frame(kZstdName, ZSTD_getErrorName(length));
  const std::uint64_t most = most_content(FrameKind::zstd, length);
  if (*content > most)
    fail_frame(kZstdName, "a content size that its bytes cannot have",
               fmt::format("{} bytes", *content), fmt::format("{} bytes", most));
  return {.stored = length, .content = *content};
}

}  // namespace thalia::codec
