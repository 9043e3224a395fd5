#include "codec/lz4_frame.h"

#include <lz4frame.h>

#include <memory>
#include <new>

#include "base/fail.h"

namespace thalia::codec {
namespace {

struct FreeDecoder {
  void operator()(LZ4F_dctx* context) const noexcept { LZ4F_freeDecompressionContext(context); }
};

std::unique_ptr<LZ4F_dctx, FreeDecoder> make_decoder() {
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) throw std::bad_alloc();
  return std::unique_ptr<LZ4F_dctx, FreeDecoder>(context);
}

[[noreturn]] void fail_frame(std::string message, std::string value, std::string bound) {
  throw FormatError(ErrorCode::bad_value, std::move(message),
                    {.section = "payload",
                     .field = "lz4 frame",
                     .value = std::move(value),
                     .bound = std::move(bound)});
}

}  // namespace

void lz4_encode(int level, ByteSpan raw, std::vector<std::byte>& out) {
  LZ4F_preferences_t preferences = LZ4F_INIT_PREFERENCES;
  preferences.frameInfo.contentSize = raw.size();
  preferences.frameInfo.blockSizeID = LZ4F_max1MB;
  preferences.compressionLevel = level;
  out.resize(LZ4F_compressFrameBound(raw.size(), &preferences));
  const std::size_t length =
      LZ4F_compressFrame(out.data(), out.size(), raw.data(), raw.size(), &preferences);
  if (LZ4F_isError(length)) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           fmt::format("lz4: {}", LZ4F_getErrorName(length)));
  }
  out.resize(length);
}

void lz4_decode(ByteSpan stored, MutableByteSpan raw) {
  // A new context each time: one that failed half-way cannot be trusted to start over.
  const auto context = make_decoder();
  LZ4F_frameInfo_t info = LZ4F_INIT_FRAMEINFO;
  std::size_t consumed = stored.size();
  std::size_t hint = LZ4F_getFrameInfo(context.get(), &info, stored.data(), &consumed);
  if (LZ4F_isError(hint)) fail_frame(LZ4F_getErrorName(hint), "", "");
  if (info.frameType != LZ4F_frame || info.contentSize != raw.size()) {
    fail_frame("content size", std::to_string(info.contentSize), std::to_string(raw.size()));
  }
  std::size_t written = 0;
  while (hint != 0) {
    std::size_t room = raw.size() - written;
    std::size_t taken = stored.size() - consumed;
    hint = LZ4F_decompress(context.get(), raw.data() + written, &room, stored.data() + consumed,
                           &taken, nullptr);
    if (LZ4F_isError(hint)) fail_frame(LZ4F_getErrorName(hint), "", "");
    if (room == 0 && taken == 0)
      fail_frame("the frame does not end", std::to_string(stored.size()), "");
    written += room;
    consumed += taken;
  }
  if (written != raw.size())
    fail_frame("decompressed bytes", std::to_string(written), std::to_string(raw.size()));
  if (consumed != stored.size())
    fail_frame("bytes behind the frame", std::to_string(stored.size() - consumed), "0");
}

}  // namespace thalia::codec
