// What follows the frames of a .thalia.zst or .thalia.lz4: a table that says where each frame
// begins, inside a skippable frame. docs/format/format.md, "Wrappers".
#pragma once

#include "format/little_endian.h"

namespace thalia::format {

/// The magic number of the skippable frame that holds a seek table.
inline constexpr std::uint8_t kSeekTableMagic[4] = {0x5E, 0x2A, 0x4D, 0x18};
/// The last four bytes of a seek table of zstd frames, those of zstd's seekable format.
inline constexpr std::uint8_t kZstdSeekMagic[4] = {0xB1, 0xEA, 0x92, 0x8F};
/// The last four bytes of a seek table of lz4 frames, this format's own.
inline constexpr std::uint8_t kLz4SeekMagic[4] = {'T', 'L', 'Z', '4'};
/// A bit of SeekFooter::descriptor: each entry has 4 bytes more, a checksum.
inline constexpr std::uint8_t kSeekChecksums = 1 << 7;
inline constexpr std::uint32_t kMaxSeekFrames = 1 << 27;

struct SkippableHeader {
  std::uint8_t magic[4];
  le32 length;
};

THALIA_ON_DISK(SkippableHeader, 8);
THALIA_FIELD(SkippableHeader, magic, 0x00, 4);
THALIA_FIELD(SkippableHeader, length, 0x04, 4);

struct SeekEntry {
  le32 stored_length;
  le32 content_length;
};

THALIA_ON_DISK(SeekEntry, 8);
THALIA_FIELD(SeekEntry, stored_length, 0x00, 4);
THALIA_FIELD(SeekEntry, content_length, 0x04, 4);

struct SeekFooter {
  le32 frame_count;
  std::uint8_t descriptor;
  std::uint8_t magic[4];
};

THALIA_ON_DISK(SeekFooter, 9);
THALIA_FIELD(SeekFooter, frame_count, 0x00, 4);
THALIA_FIELD(SeekFooter, descriptor, 0x04, 1);
THALIA_FIELD(SeekFooter, magic, 0x05, 4);

}  // namespace thalia::format
