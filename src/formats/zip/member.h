// One member of a zip archive, as the directory and the header before its data describe it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "thalia/types.h"

namespace thalia::formats {

enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };

struct ZipMember {
  std::string name;  ///< UTF-8; ends in "/" where it stands for a folder
  ZipMethod method = ZipMethod::stored;
  std::uint32_t crc32 = 0;         ///< of the raw bytes
  std::uint64_t stored_bytes = 0;  ///< in the archive
  std::uint64_t raw_bytes = 0;     ///< the same unless deflated
  std::uint64_t offset = 0;        ///< of the stored bytes, from the start of the file
  // What tells who wrote the archive.
  std::uint64_t header_offset = 0;
  std::uint16_t flags = 0;
  std::uint16_t version_made_by = 0;
  std::uint16_t version_needed = 0;
  std::uint16_t time = 0;  ///< as MS-DOS counts it
  std::uint16_t date = 0;
  std::uint32_t external_attributes = 0;
  std::uint16_t local_version_needed = 0;  ///< before the data
  ByteSpan local_extra;                    ///< the extra field before the data

  bool is_folder() const noexcept { return name.ends_with('/'); }
};

/// Reads the record at `offset` of the file, moves `offset` after it, and finds the member's data,
/// which lies before `directory`. Records end at `end`. @throws as ZipDirectory::parse().
ZipMember read_zip_member(ByteSpan file, std::uint64_t& offset, std::uint64_t end,
                          std::uint64_t directory);

/// What no member may be called, in a few words; empty where the name is fine. Static storage.
std::string_view zip_name_fault(std::string_view name) noexcept;

/// Names that are need no flag.
bool is_zip_ascii(std::string_view name) noexcept;

/// @throws IntegrityError where a member's bytes have another CRC-32 than the archive says.
void check_zip_crc(const ZipMember& member, std::uint32_t actual);

}  // namespace thalia::formats
