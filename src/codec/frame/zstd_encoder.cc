// Frames piece by piece with libzstd's streaming encoder. The end comes in a call of its own: if
// the first call is the last one too, libzstd knows the content's size and puts it into the frame.
#include "codec/frame/zstd_encoder.h"

#include <zstd.h>

#include <new>
#include <vector>

namespace thalia::codec {

struct ZstdEncoder::State {
  struct FreeContext {
    void operator()(ZSTD_CCtx* made) const noexcept { ZSTD_freeCCtx(made); }
  };
  std::unique_ptr<ZSTD_CCtx, FreeContext> context{ZSTD_createCCtx()};
  std::vector<std::byte> room = std::vector<std::byte>(ZSTD_CStreamOutSize());
};

ZstdEncoder::ZstdEncoder(int level) : state_(std::make_unique<State>()) {
  if (!state_->context ||
      ZSTD_isError(ZSTD_CCtx_setParameter(state_->context.get(), ZSTD_c_compressionLevel, level)))
    throw std::bad_alloc();
}

ZstdEncoder::~ZstdEncoder() = default;

void ZstdEncoder::expect(std::uint64_t content_bytes) {
  if (ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(state_->context.get(), content_bytes)))
    throw std::bad_alloc();
}

void ZstdEncoder::write(ByteSpan raw, const Sink& sink) {
  if (!raw.empty()) step(raw, false, sink);
}

void ZstdEncoder::finish(const Sink& sink) {
  step({}, true, sink);
}

void ZstdEncoder::step(ByteSpan raw, bool end, const Sink& sink) {
  ZSTD_inBuffer in{raw.data(), raw.size(), 0};
  while (true) {
    ZSTD_outBuffer out{state_->room.data(), state_->room.size(), 0};
    const std::size_t left =
        ZSTD_compressStream2(state_->context.get(), &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
    // With valid arguments it fails for lack of memory alone.
    if (ZSTD_isError(left)) throw std::bad_alloc();
    if (out.pos > 0) sink(ByteSpan(state_->room).first(out.pos));
    if (end ? left == 0 : in.pos == in.size) return;
  }
}

}  // namespace thalia::codec
