// The 256-byte file header and the commit record, its copy near the end of the file.
// docs/format/format.md, "Header".
#pragma once

#include "format/little_endian.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::format {

inline constexpr std::uint8_t kMagic[4] = {'T', 'H', 'A', 'L'};

/// Bits of Header::flags. Persistent.
inline constexpr std::uint16_t kFlagCompressed = 1 << 0;
inline constexpr std::uint16_t kFlagLz4 = 1 << 1;
inline constexpr std::uint16_t kFlagHomeostatic = 1 << 2;
inline constexpr std::uint16_t kFlagNeuromodulators = 1 << 3;
inline constexpr std::uint16_t kFlagSparse = 1 << 4;
inline constexpr std::uint16_t kFlagMixedPrecision = 1 << 5;
inline constexpr std::uint16_t kFlagDelta = 1 << 6;
inline constexpr std::uint16_t kKnownFlags = (1 << 7) - 1;

/// Feature bits that this version understands. A reader refuses a file with any other incompatible
/// bit set.
inline constexpr std::uint32_t kKnownIncompatible = 0;

struct Header {
  std::uint8_t magic[4];
  le16 major_version;
  le16 minor_version;
  le16 patch_version;
  le16 flags;
  le64 timestamp;
  le64 metadata_offset;
  le64 metadata_length;
  le64 region_index_offset;
  le64 region_index_length;
  le64 connectivity_offset;
  le64 connectivity_length;
  le64 total_neurons;
  le64 total_synapses;
  le64 training_steps;
  le32 num_regions;
  LittleEndian<ChecksumType> checksum_type;
  le32 header_crc32;
  le64 file_length;
  le64 directory_offset;
  le64 directory_length;
  le64 integrity_offset;
  le64 integrity_length;
  le64 generation;
  Uuid file_uuid;
  Digest256 base_checksum;
  le64 base_step;
  std::uint8_t integrity_block_log2;
  LeafAlgorithm leaf_algorithm;  ///< no enumerator, 0, if there is no tree
  std::uint8_t zero_d2[2];
  le32 incompatible_features;
  le32 compatible_features;
  std::uint8_t zero_dc[36];
};

THALIA_ON_DISK(Header, 256);
THALIA_FIELD(Header, magic, 0x00, 4);
THALIA_FIELD(Header, major_version, 0x04, 2);
THALIA_FIELD(Header, minor_version, 0x06, 2);
THALIA_FIELD(Header, patch_version, 0x08, 2);
THALIA_FIELD(Header, flags, 0x0A, 2);
THALIA_FIELD(Header, timestamp, 0x0C, 8);
THALIA_FIELD(Header, metadata_offset, 0x14, 8);
THALIA_FIELD(Header, metadata_length, 0x1C, 8);
THALIA_FIELD(Header, region_index_offset, 0x24, 8);
THALIA_FIELD(Header, region_index_length, 0x2C, 8);
THALIA_FIELD(Header, connectivity_offset, 0x34, 8);
THALIA_FIELD(Header, connectivity_length, 0x3C, 8);
THALIA_FIELD(Header, total_neurons, 0x44, 8);
THALIA_FIELD(Header, total_synapses, 0x4C, 8);
THALIA_FIELD(Header, training_steps, 0x54, 8);
THALIA_FIELD(Header, num_regions, 0x5C, 4);
THALIA_FIELD(Header, checksum_type, 0x60, 4);
THALIA_FIELD(Header, header_crc32, 0x64, 4);
THALIA_FIELD(Header, file_length, 0x68, 8);
THALIA_FIELD(Header, directory_offset, 0x70, 8);
THALIA_FIELD(Header, directory_length, 0x78, 8);
THALIA_FIELD(Header, integrity_offset, 0x80, 8);
THALIA_FIELD(Header, integrity_length, 0x88, 8);
THALIA_FIELD(Header, generation, 0x90, 8);
THALIA_FIELD(Header, file_uuid, 0x98, 16);
THALIA_FIELD(Header, base_checksum, 0xA8, 32);
THALIA_FIELD(Header, base_step, 0xC8, 8);
THALIA_FIELD(Header, integrity_block_log2, 0xD0, 1);
THALIA_FIELD(Header, leaf_algorithm, 0xD1, 1);
THALIA_FIELD(Header, zero_d2, 0xD2, 2);
THALIA_FIELD(Header, incompatible_features, 0xD4, 4);
THALIA_FIELD(Header, compatible_features, 0xD8, 4);
THALIA_FIELD(Header, zero_dc, 0xDC, 36);

}  // namespace thalia::format
