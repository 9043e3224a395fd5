// Frames piece by piece with libzstd's streaming decoder. Its own limit on a frame's window, 128
// MiB by default, is what keeps the memory small; a frame that asks for more is refused.
#include "codec/frame/zstd_decoder.h"

#include <zstd.h>

#include <new>

#include "codec/frame/frame_error.h"

namespace thalia::codec {
namespace {

class ZstdDecoder final : public FrameDecoder {
 public:
  ZstdDecoder() : FrameDecoder(FrameKind::zstd), context_(ZSTD_createDCtx()) {
    if (!context_) throw std::bad_alloc();
  }
  Step advance(ByteSpan stored, MutableByteSpan room) override {
    ZSTD_inBuffer in{stored.data(), stored.size(), 0};
    ZSTD_outBuffer out{room.data(), room.size(), 0};
    // 0 says that the frame has ended, and that all of its content is in `room`.
    const std::size_t hint = ZSTD_decompressStream(context_.get(), &out, &in);
    if (ZSTD_isError(hint)) fail_frame(kZstdName, ZSTD_getErrorName(hint));
    return {in.pos, out.pos, hint == 0};
  }

 private:
  struct FreeContext {
    void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
};

}  // namespace

std::unique_ptr<FrameDecoder> make_zstd_decoder() {
  return std::make_unique<ZstdDecoder>();
}

std::optional<std::uint64_t> zstd_content_size(ByteSpan start) {
  const unsigned long long content = ZSTD_getFrameContentSize(start.data(), start.size());
  if (content == ZSTD_CONTENTSIZE_ERROR) fail_frame(kZstdName, "broken header");
  if (content == ZSTD_CONTENTSIZE_UNKNOWN) return std::nullopt;
  return content;
}

}  // namespace thalia::codec
