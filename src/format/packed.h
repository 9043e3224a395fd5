// What a packed delta begins with. docs/format/packed.md.
#pragma once

#include "format/little_endian.h"

namespace thalia::format {

inline constexpr std::uint8_t kPackedMagic[4] = {'T', 'P', 'A', 'K'};
inline constexpr std::uint32_t kPackedVersion = 1;
inline constexpr std::uint32_t kMaxPackedContents = 67108864;

struct PackedHeader {
  std::uint8_t magic[4];
  le32 packed_version;
  le32 contents_length;
  le32 frame_length;
};

THALIA_ON_DISK(PackedHeader, 16);
THALIA_FIELD(PackedHeader, magic, 0x00, 4);
THALIA_FIELD(PackedHeader, packed_version, 0x04, 4);
THALIA_FIELD(PackedHeader, contents_length, 0x08, 4);
THALIA_FIELD(PackedHeader, frame_length, 0x0C, 4);

}  // namespace thalia::format
