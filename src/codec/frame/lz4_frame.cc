// Whole frames with liblz4. A frame must fill `stored` and decode to `raw` exactly; both are
// checked here, because the library stops at a frame's end without a word about what follows.
#include "codec/frame/lz4_frame.h"

#include <lz4frame.h>

#include <memory>
#include <new>
#include <string>

#include "codec/frame/frame_error.h"
#include "codec/frame/lz4_level.h"
#include "codec/frame/lz4_start.h"

namespace thalia::codec {
namespace {

struct FreeLz4 {
  void operator()(LZ4F_dctx* context) const noexcept { LZ4F_freeDecompressionContext(context); }
};

// Done first, so that a wrong size is named before anything is decoded.
void check_start(ByteSpan stored, std::uint64_t raw_length, bool needs_size) {
  const Lz4Start start = lz4_start(stored);
  const bool has_size = (start.flags & kLz4ContentSizeFlag) != 0;
  if (!has_size && needs_size) fail_frame(kLz4Name, "no content size");
  if (has_size && start.content_size != raw_length)
    fail_frame(kLz4Name, "wrong content size", in_bytes(start.content_size), in_bytes(raw_length));
}

}  // namespace

void lz4_encode(int level, ByteSpan raw, std::vector<std::byte>& out, bool with_checksum,
                Lz4BlockSize block_size) {
  LZ4F_preferences_t preferences = {};
  preferences.frameInfo.blockSizeID =  // made smaller if the content is
      block_size == Lz4BlockSize::kib64 ? LZ4F_max64KB : LZ4F_max4MB;
  preferences.frameInfo.contentSize = raw.size();
  if (with_checksum) preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
  preferences.compressionLevel = lz4_level(level);
  out.resize(LZ4F_compressFrameBound(raw.size(), &preferences));
  const std::size_t length =
      LZ4F_compressFrame(out.data(), out.size(), raw.data(), raw.size(), &preferences);
  if (LZ4F_isError(length)) throw std::bad_alloc();  // with enough room there is no other failure
  out.resize(length);
}

void lz4_decode(ByteSpan stored, MutableByteSpan raw, bool needs_size) {
  check_start(stored, raw.size(), needs_size);
  LZ4F_dctx* made = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION))) throw std::bad_alloc();
  const std::unique_ptr<LZ4F_dctx, FreeLz4> context(made);

  LZ4F_decompressOptions_t options = {};
  options.stableDst = 1;  // what is decoded stays in `raw`, so linked blocks need no copy of it
  // The library may stop before its input ends, so it is called until the frame has ended. A call
  // that neither reads nor writes would be repeated for ever: either the input or the room has run
  // out.
  for (std::size_t hint = 1; hint != 0;) {
    std::size_t written = raw.size();
    std::size_t consumed = stored.size();
    hint = LZ4F_decompress(context.get(), raw.data(), &written, stored.data(), &consumed, &options);
    if (LZ4F_isError(hint)) fail_frame(kLz4Name, LZ4F_getErrorName(hint));
    raw = raw.subspan(written);
    stored = stored.subspan(consumed);
    if (hint != 0 && written == 0 && consumed == 0)
      fail_frame(kLz4Name, stored.empty() ? "ends too early" : "holds more than its content size");
  }
  if (!raw.empty()) fail_frame(kLz4Name, "holds less than its content size");
  if (!stored.empty()) fail_frame(kLz4Name, "bytes follow the frame");
}

}  // namespace thalia::codec
