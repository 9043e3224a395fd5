// What zstd and lz4 frames have in common: telling them apart, and limits that need no decoding. A
// FrameDecoder checks the magic number before a library sees a frame, as the libraries accept more
// than this format does: skippable frames, and frames of early versions.
#include "codec/frame/frame.h"

#include <cstring>
#include <limits>
#include <string>

#include "base/fail.h"
#include "codec/frame/frame_error.h"
#include "codec/frame/lz4_decoder.h"
#include "codec/frame/lz4_frame.h"
#include "codec/frame/lz4_start.h"
#include "codec/frame/zstd_decoder.h"
#include "codec/frame/zstd_frame.h"
#include "format/little_endian.h"

namespace thalia::codec {
namespace {

constexpr std::uint32_t kZstdMagic = 0xfd2fb528;
constexpr std::uint32_t kSkippableMagic = 0x184d2a50;  // and the 15 after it
constexpr std::uint32_t kSkippableMask = 0xfffffff0;

// The most that stored bytes can stand for. A zstd block of 4 bytes can repeat one byte over 128
// KiB; a byte of LZ4 stands for at most 255.
constexpr std::uint64_t kZstdBlock = 128 << 10;
constexpr std::uint64_t kZstdLeastBlock = 4;
constexpr std::uint64_t kLz4Ratio = 255;

[[noreturn]] void fail_frame_codec(Codec codec) {
  fail_argument(ErrorCode::bad_argument, "codec", std::to_string(static_cast<int>(codec)),
                "1 (zstd) or 2 (lz4)");
}

}  // namespace

FrameKind frame_kind(ByteSpan start) noexcept {
  format::le32 magic;
  if (start.size() < sizeof(magic)) return FrameKind::none;
  std::memcpy(&magic, start.data(), sizeof(magic));
  if (magic == kZstdMagic) return FrameKind::zstd;
  if (magic == kLz4Magic) return FrameKind::lz4;
  if ((magic & kSkippableMask) == kSkippableMagic) return FrameKind::skippable;
  return FrameKind::none;
}

std::optional<std::uint64_t> content_size(ByteSpan start) {
  return frame_kind(start) == FrameKind::lz4 ? lz4_content_size(start) : zstd_content_size(start);
}

std::uint64_t most_content(FrameKind kind, std::uint64_t stored_length) noexcept {
  std::uint64_t most = 0;
  // A product beyond 64 bits means that nothing is ruled out.
  const bool wraps =
      kind == FrameKind::lz4
          ? __builtin_mul_overflow(stored_length, kLz4Ratio, &most)
          : __builtin_mul_overflow(stored_length / kZstdLeastBlock + 1, kZstdBlock, &most);
  return wraps ? std::numeric_limits<std::uint64_t>::max() : most;
}

void decode_frame(Codec codec, ByteSpan stored, MutableByteSpan raw) {
  if (codec == Codec::lz4) return lz4_decode(stored, raw, false);
  if (codec == Codec::zstd) return zstd_decode(stored, raw, false);
  fail_frame_codec(codec);
}

void encode_frame(Codec codec, int level, ByteSpan raw, std::vector<std::byte>& out) {
  if (codec == Codec::lz4) return lz4_encode(level, raw, out, true);
  if (codec == Codec::zstd) return zstd_encode(level, raw, out, true);
  fail_frame_codec(codec);
}

FrameDecoder::Step FrameDecoder::decode(ByteSpan stored, MutableByteSpan room) {
  if (!inside_) {  // zstd's library may know frames of its first versions, too
    const FrameKind kind = frame_kind(stored);
    if (kind != kind_ && kind != FrameKind::skippable)
      fail_frame(kind_ == FrameKind::zstd ? "zstd" : "lz4", "wrong magic number");
  }
  const Step step = advance(stored, room);
  inside_ = !step.frame_ended;
  return step;
}

std::unique_ptr<FrameDecoder> FrameDecoder::create(Codec codec) {
  if (codec == Codec::lz4) return make_lz4_decoder();
  if (codec == Codec::zstd) return make_zstd_decoder();
  fail_frame_codec(codec);
}

}  // namespace thalia::codec
