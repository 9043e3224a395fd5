#include "codec/zstd_frame.h"

#include <zstd.h>

#include <memory>
#include <new>

#include "base/fail.h"

namespace thalia::codec {
namespace {

struct FreeEncoder {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};
struct FreeDecoder {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

[[noreturn]] void fail_frame(std::string message, std::string value, std::string bound) {
  throw FormatError(ErrorCode::bad_value, std::move(message),
                    {.section = "payload",
                     .field = "zstd frame",
                     .value = std::move(value),
                     .bound = std::move(bound)});
}

}  // namespace

void zstd_encode(int level, ByteSpan raw, std::vector<std::byte>& out) {
  // One context a thread: making one costs more than compressing a small chunk.
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeEncoder> context(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  out.resize(ZSTD_compressBound(raw.size()));
  const std::size_t length =
      ZSTD_compressCCtx(context.get(), out.data(), out.size(), raw.data(), raw.size(), level);
  if (ZSTD_isError(length)) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           fmt::format("zstd: {}", ZSTD_getErrorName(length)));
  }
  out.resize(length);
}

void zstd_decode(ByteSpan stored, MutableByteSpan raw) {
  const unsigned long long content = ZSTD_getFrameContentSize(stored.data(), stored.size());
  if (content == ZSTD_CONTENTSIZE_ERROR) fail_frame("not the start of a zstd frame", "", "");
  if (content == ZSTD_CONTENTSIZE_UNKNOWN || content != raw.size()) {
    fail_frame("content size",
               content == ZSTD_CONTENTSIZE_UNKNOWN ? "none" : std::to_string(content),
               std::to_string(raw.size()));
  }
  const std::size_t frame = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (ZSTD_isError(frame)) fail_frame(ZSTD_getErrorName(frame), "", "");
  if (frame != stored.size()) {
    fail_frame("bytes behind the frame", std::to_string(stored.size() - frame), "0");
  }
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeDecoder> context(ZSTD_createDCtx());
  if (!context) throw std::bad_alloc();
  const std::size_t length =
      ZSTD_decompressDCtx(context.get(), raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_isError(length)) fail_frame(ZSTD_getErrorName(length), "", "");
  if (length != raw.size())
    fail_frame("decompressed bytes", std::to_string(length), std::to_string(raw.size()));
}

}  // namespace thalia::codec
