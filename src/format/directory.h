// The directory: everything needed to find a tensor, in one place near the end of the file.
// docs/format/format.md, "Directory".
#pragma once

#include "format/little_endian.h"

namespace thalia::format {

inline constexpr std::uint8_t kDirectoryMagic[4] = {'T', 'D', 'I', 'R'};
inline constexpr std::uint32_t kDirectoryVersion = 1;

/// First bytes of the directory. Offsets count from the directory's first byte. The arrays are in
/// the order of the fields, without gaps but for zero padding to a multiple of 8.
struct DirectoryHeader {
  std::uint8_t magic[4];
  le32 directory_version;
  le32 region_count;
  le32 tensor_count;
  le32 chunk_count;
  le32 directory_crc32;
  le64 regions_offset;
  le64 region_order_offset;
  le64 tensors_offset;
  le64 chunks_offset;
  le64 names_offset;
  le64 names_length;
  le64 side_data_offset;
  le64 side_data_length;
  std::uint8_t zero_58[40];
};

THALIA_ON_DISK(DirectoryHeader, 128);
THALIA_FIELD(DirectoryHeader, magic, 0x00, 4);
THALIA_FIELD(DirectoryHeader, directory_version, 0x04, 4);
THALIA_FIELD(DirectoryHeader, region_count, 0x08, 4);
THALIA_FIELD(DirectoryHeader, tensor_count, 0x0C, 4);
THALIA_FIELD(DirectoryHeader, chunk_count, 0x10, 4);
THALIA_FIELD(DirectoryHeader, directory_crc32, 0x14, 4);
THALIA_FIELD(DirectoryHeader, regions_offset, 0x18, 8);
THALIA_FIELD(DirectoryHeader, region_order_offset, 0x20, 8);
THALIA_FIELD(DirectoryHeader, tensors_offset, 0x28, 8);
THALIA_FIELD(DirectoryHeader, chunks_offset, 0x30, 8);
THALIA_FIELD(DirectoryHeader, names_offset, 0x38, 8);
THALIA_FIELD(DirectoryHeader, names_length, 0x40, 8);
THALIA_FIELD(DirectoryHeader, side_data_offset, 0x48, 8);
THALIA_FIELD(DirectoryHeader, side_data_length, 0x50, 8);
THALIA_FIELD(DirectoryHeader, zero_58, 0x58, 40);

/// One region's full name and its run of tensor entries. Entry k belongs to region index entry k;
/// one more entry, with an empty name, holds the matrices of the connectivity section if there
/// are any.
struct DirectoryRegion {
  le32 name_offset;
  le16 name_length;
  le16 flags;
  le32 first_tensor;
  le32 tensor_count;
  le64 logical_bytes;
  le64 stored_bytes;
};

inline constexpr std::uint16_t kRegionConnectivity = 1 << 0;

THALIA_ON_DISK(DirectoryRegion, 32);
THALIA_FIELD(DirectoryRegion, name_offset, 0x00, 4);
THALIA_FIELD(DirectoryRegion, name_length, 0x04, 2);
THALIA_FIELD(DirectoryRegion, flags, 0x06, 2);
THALIA_FIELD(DirectoryRegion, first_tensor, 0x08, 4);
THALIA_FIELD(DirectoryRegion, tensor_count, 0x0C, 4);
THALIA_FIELD(DirectoryRegion, logical_bytes, 0x10, 8);
THALIA_FIELD(DirectoryRegion, stored_bytes, 0x18, 8);

}  // namespace thalia::format
