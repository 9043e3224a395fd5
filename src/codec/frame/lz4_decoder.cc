// Frames piece by piece with liblz4's streaming decoder, which keeps what it needs of earlier
// blocks itself. A context is ready for the next frame as soon as one has ended.
#include "codec/frame/lz4_decoder.h"

#include <lz4frame.h>

#include <cstring>
#include <new>

#include "codec/frame/frame_error.h"
#include "codec/frame/lz4_start.h"

namespace thalia::codec {
namespace {

class Lz4Decoder final : public FrameDecoder {
 public:
  Lz4Decoder() : FrameDecoder(FrameKind::lz4) {
    LZ4F_dctx* made = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION))) throw std::bad_alloc();
    context_.reset(made);
  }
  Step advance(ByteSpan stored, MutableByteSpan room) override {
    std::size_t consumed = stored.size();
    std::size_t written = room.size();
    // 0 says that the frame has ended; other values are the library's wish for the next input,
    // which callers need not follow.
    const std::size_t hint =
        LZ4F_decompress(context_.get(), room.data(), &written, stored.data(), &consumed, nullptr);
    if (LZ4F_isError(hint)) fail_frame(kLz4Name, LZ4F_getErrorName(hint));
    return {consumed, written, hint == 0};
  }

 private:
  struct FreeContext {
    void operator()(LZ4F_dctx* context) const noexcept { LZ4F_freeDecompressionContext(context); }
  };
  std::unique_ptr<LZ4F_dctx, FreeContext> context_;
};

}  // namespace

std::unique_ptr<FrameDecoder> make_lz4_decoder() {
  return std::make_unique<Lz4Decoder>();
}

std::optional<std::uint64_t> lz4_content_size(ByteSpan start) {
  const Lz4Start header = lz4_start(start);
  if ((header.flags & kLz4ContentSizeFlag) == 0) return std::nullopt;
  return header.content_size;
}

}  // namespace thalia::codec
