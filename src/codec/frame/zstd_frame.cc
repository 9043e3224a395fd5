// Whole frames with libzstd. A frame must fill `stored` and decode to `raw` exactly; header and
// length are checked before the first byte is written. Contexts are expensive to make and belong to
// the thread, so calls share nothing and need no lock.
#include "codec/frame/zstd_frame.h"

#include <zstd.h>

#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "codec/frame/frame_error.h"
#include "format/little_endian.h"

namespace thalia::codec {
namespace {

// A context of a high level takes up to hundreds of MiB; each thread would keep that for good.
constexpr std::size_t kKeptContext = 16 << 20;

struct FreeZstd {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

// With enough room, compressing fails for lack of memory alone.
std::size_t compressed(std::size_t result) {
  if (ZSTD_isError(result)) throw std::bad_alloc();
  return result;
}

// Everything that can be known before the first byte is written.
void check_frame(ByteSpan stored, std::uint64_t raw_length, bool needs_size) {
  format::le32 magic;
  // zstd's own functions also take skippable frames and those of its versions before 0.8.
  if (stored.size() < sizeof(magic)) fail_frame(kZstdName, "too short", in_bytes(stored.size()));
  std::memcpy(&magic, stored.data(), sizeof(magic));
  if (magic != ZSTD_MAGICNUMBER)
    fail_frame(kZstdName, "wrong magic number", fmt::format("{:#010x}", std::uint32_t{magic}),
               fmt::format("{:#010x}", ZSTD_MAGICNUMBER));

  const unsigned long long content = ZSTD_getFrameContentSize(stored.data(), stored.size());
  if (content == ZSTD_CONTENTSIZE_ERROR) fail_frame(kZstdName, "broken header");
  const bool has_size = content != ZSTD_CONTENTSIZE_UNKNOWN;
  if (!has_size && needs_size) fail_frame(kZstdName, "no content size");
  if (has_size && content != raw_length)
    fail_frame(kZstdName, "wrong content size", in_bytes(content), in_bytes(raw_length));

  const std::size_t length = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (ZSTD_isError(length)) fail_frame(kZstdName, ZSTD_getErrorName(length));
  if (length != stored.size())
    fail_frame(kZstdName, "bytes follow the frame", in_bytes(stored.size()), in_bytes(length));
}

}  // namespace

void zstd_encode(int level, ByteSpan raw, std::vector<std::byte>& out, bool with_checksum) {
  // A save has many frames, so the thread keeps its context, unless a high level has made it large.
  thread_local std::unique_ptr<ZSTD_CCtx, FreeZstd> context;
  if (!context) context.reset(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  // The frame carries its content size by default, and no checksum: a chunk has its CRC-32.
  compressed(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level));
  compressed(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, with_checksum ? 1 : 0));
  out.resize(ZSTD_compressBound(raw.size()));
  out.resize(
      compressed(ZSTD_compress2(context.get(), out.data(), out.size(), raw.data(), raw.size())));
  if (ZSTD_sizeof_CCtx(context.get()) > kKeptContext) context.reset();
}

bool zstd_has_checksum(ByteSpan start) noexcept {
  // RFC 8878, "Frame_Header_Descriptor": the byte after the magic number.
  constexpr std::byte kContentChecksum{0x04};
  return start.size() > sizeof(format::le32) &&
         (start[sizeof(format::le32)] & kContentChecksum) != std::byte{0};
}

void zstd_decode(ByteSpan stored, MutableByteSpan raw, bool needs_size) {
  check_frame(stored, raw.size(), needs_size);
  // Kept by the thread: 160 KiB that cost more to make than a chunk of 4 KiB to decode.
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeZstd> context(ZSTD_createDCtx());
  if (!context) throw std::bad_alloc();
  const std::size_t decoded =
      ZSTD_decompressDCtx(context.get(), raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_isError(decoded)) fail_frame(kZstdName, ZSTD_getErrorName(decoded));
  if (decoded != raw.size())
    fail_frame(kZstdName, "decodes to another size", in_bytes(decoded), in_bytes(raw.size()));
}

}  // namespace thalia::codec
