// The directory's chunk entry: one independently stored piece of a tensor. docs/format/format.md,
// "Chunks".
#pragma once

#include "format/little_endian.h"
#include "thalia/options.h"

namespace thalia::format {

/// Persistent: values are part of the format.
enum class Filter : std::uint8_t {
  none = 0,
  byte_planes_2 = 1,
  byte_planes_4 = 2,
  byte_planes_8 = 3,
  difference_planes_4 = 4,
  difference_planes_8 = 5
};
inline constexpr std::uint8_t kFilterCount = 6;

struct ChunkEntry {
  le64 offset;
  le32 stored_length;
  le32 raw_length;
  le32 crc32;
  Codec codec;
  Filter filter;
  le16 zero_16;
};

THALIA_ON_DISK(ChunkEntry, 24);
THALIA_FIELD(ChunkEntry, offset, 0x00, 8);
THALIA_FIELD(ChunkEntry, stored_length, 0x08, 4);
THALIA_FIELD(ChunkEntry, raw_length, 0x0C, 4);
THALIA_FIELD(ChunkEntry, crc32, 0x10, 4);
THALIA_FIELD(ChunkEntry, codec, 0x14, 1);
THALIA_FIELD(ChunkEntry, filter, 0x15, 1);
THALIA_FIELD(ChunkEntry, zero_16, 0x16, 2);

}  // namespace thalia::format
