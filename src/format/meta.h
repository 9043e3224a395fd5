// The structures of a side file. docs/format/format.md, "Side files".
#pragma once

#include "format/little_endian.h"
#include "thalia/types.h"

namespace thalia::format {

inline constexpr std::uint8_t kMetaMagic[4] = {'T', 'M', 'E', 'T'};
inline constexpr std::uint32_t kMetaVersion = 1;

struct MetaHeader {
  std::uint8_t magic[4];
  le32 meta_version;
  le32 meta_crc32;
  le32 extent_count;
  le64 source_length;
  le64 meta_length;
  Digest256 source_checksum;
};

THALIA_ON_DISK(MetaHeader, 64);
THALIA_FIELD(MetaHeader, magic, 0x00, 4);
THALIA_FIELD(MetaHeader, meta_version, 0x04, 4);
THALIA_FIELD(MetaHeader, meta_crc32, 0x08, 4);
THALIA_FIELD(MetaHeader, extent_count, 0x0C, 4);
THALIA_FIELD(MetaHeader, source_length, 0x10, 8);
THALIA_FIELD(MetaHeader, meta_length, 0x18, 8);
THALIA_FIELD(MetaHeader, source_checksum, 0x20, 32);

struct MetaExtent {
  le64 offset;
  le64 length;
};

THALIA_ON_DISK(MetaExtent, 16);
THALIA_FIELD(MetaExtent, offset, 0x00, 8);
THALIA_FIELD(MetaExtent, length, 0x08, 8);

}  // namespace thalia::format
