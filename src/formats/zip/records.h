// The records of a zip archive as they are in the file. APPNOTE.TXT 6.3, section 4.3.
#pragma once

#include <cstdint>

#include "format/little_endian.h"

namespace thalia::formats::zip {

inline constexpr std::uint32_t kLocalSignature = 0x04034b50;
inline constexpr std::uint32_t kDescriptorSignature = 0x08074b50;
inline constexpr std::uint32_t kCentralSignature = 0x02014b50;
inline constexpr std::uint32_t kEnd64Signature = 0x06064b50;
inline constexpr std::uint32_t kLocatorSignature = 0x07064b50;
inline constexpr std::uint32_t kEndSignature = 0x06054b50;

// Flags of a member.
inline constexpr std::uint16_t kEncrypted = 1u << 0;
inline constexpr std::uint16_t kDescriptor = 1u << 3;  ///< CRC and sizes follow the data
inline constexpr std::uint16_t kPatched = 1u << 5;
inline constexpr std::uint16_t kStrongEncryption = 1u << 6;
inline constexpr std::uint16_t kUtf8 = 1u << 11;  ///< of the name; else code page 437
inline constexpr std::uint16_t kMaskedHeaders = 1u << 13;

inline constexpr std::uint16_t kStored = 0;
inline constexpr std::uint16_t kDeflated = 8;

/// A number of 32 bits that says: the real one is in the zip64 extra field or record.
inline constexpr std::uint32_t kInZip64 = 0xffffffff;
inline constexpr std::uint16_t kCountInZip64 = 0xffff;
inline constexpr std::uint16_t kZip64Extra = 0x0001;
inline constexpr std::uint16_t kVersionOfZip64 = 45;

/// Then the name and the extra field.
struct LocalHeader {
  format::le32 signature;
  format::le16 version_needed;
  format::le16 flags;
  format::le16 method;
  format::le16 time;
  format::le16 date;
  format::le32 crc32;
  format::le32 stored_bytes;
  format::le32 raw_bytes;
  format::le16 name_length;
  format::le16 extra_length;
};
THALIA_ON_DISK(LocalHeader, 30);

/// Then the name, the extra field and the comment.
struct CentralHeader {
  format::le32 signature;
  format::le16 version_made_by;
  format::le16 version_needed;
  format::le16 flags;
  format::le16 method;
  format::le16 time;
  format::le16 date;
  format::le32 crc32;
  format::le32 stored_bytes;
  format::le32 raw_bytes;
  format::le16 name_length;
  format::le16 extra_length;
  format::le16 comment_length;
  format::le16 disk;
  format::le16 internal_attributes;
  format::le32 external_attributes;
  format::le32 header_offset;
};
THALIA_ON_DISK(CentralHeader, 46);

struct End64Record {
  format::le32 signature;
  format::le64 record_bytes;  ///< after this field
  format::le16 version_made_by;
  format::le16 version_needed;
  format::le32 disk;
  format::le32 directory_disk;
  format::le64 members_on_disk;
  format::le64 members;
  format::le64 directory_bytes;
  format::le64 directory_offset;
};
THALIA_ON_DISK(End64Record, 56);

struct End64Locator {
  format::le32 signature;
  format::le32 disk;
  format::le64 record_offset;
  format::le32 disks;
};
THALIA_ON_DISK(End64Locator, 20);

/// Then the comment, and nothing after it.
struct EndRecord {
  format::le32 signature;
  format::le16 disk;
  format::le16 directory_disk;
  format::le16 members_on_disk;
  format::le16 members;
  format::le32 directory_bytes;
  format::le32 directory_offset;
  format::le16 comment_length;
};
THALIA_ON_DISK(EndRecord, 22);

/// The header of each part of an extra field.
struct ExtraHeader {
  format::le16 id;
  format::le16 length;
};
THALIA_ON_DISK(ExtraHeader, 4);

}  // namespace thalia::formats::zip
