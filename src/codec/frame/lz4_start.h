// The header of an LZ4 frame, as far as it must be known before decoding. It is read here because
// liblz4 does not tell "no content size" from "a content size of 0".
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "codec/frame/frame_error.h"
#include "format/little_endian.h"
#include "thalia/types.h"

namespace thalia::codec {

inline constexpr std::uint32_t kLz4Magic = 0x184d2204;
inline constexpr std::uint8_t kLz4ContentSizeFlag = 1 << 3;

struct Lz4Start {
  format::le32 magic;
  std::uint8_t flags;
  std::uint8_t block_descriptor;
  format::le64 content_size;  ///< where kLz4ContentSizeFlag is set
};
static_assert(sizeof(Lz4Start) == 14);

/// @throws CompressionError for another magic, or too few bytes: no frame is shorter, but
/// one without content and content size, which is 11 bytes long and padded with zeros here.
inline Lz4Start lz4_start(ByteSpan stored) {
  constexpr std::size_t kShortest = 11;
  Lz4Start start{};
  if (stored.size() < kShortest)
    fail_frame("lz4", "too short", fmt::format("{} bytes", stored.size()));
  std::memcpy(&start, stored.data(), std::min(stored.size(), sizeof(start)));
  if (start.magic != kLz4Magic)
    fail_frame("lz4", "wrong magic number", fmt::format("{:#010x}", std::uint32_t{start.magic}),
               fmt::format("{:#010x}", kLz4Magic));
  if ((start.flags & kLz4ContentSizeFlag) != 0 && stored.size() < sizeof(start))
    fail_frame("lz4", "too short", fmt::format("{} bytes", stored.size()));
  return start;
}

}  // namespace thalia::codec
