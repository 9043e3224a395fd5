// The order of the checks decides what an error says. Magic and major version come first, as no
// other field is known to mean anything in another format. Then comes the CRC, so that damage is
// reported as damage and not as the odd value that it left in a field. Then come the fields.
#include "container/file/checked_headers.h"

#include <cstddef>

#include "base/fail.h"
#include "format/overlay.h"
#include "format/validate_directory.h"
#include "format/validate_header.h"
#include "integrity/crc32.h"

namespace thalia::container {
namespace {

// The CRC-32 of a struct in which the CRC field itself counts as zero. Takes a copy, as the struct
// may lie in a read-only mapping.
template <typename T>
std::uint32_t self_crc(T copy, format::le32 T::*field) {
  copy.*field = std::uint32_t{0};
  return integrity::crc32(format::struct_bytes(copy));
}

template <typename T>
void check_self_crc(const T& value, format::le32 T::*field, const char* section, const char* name,
                    std::uint64_t at) {
  const std::uint32_t expected = self_crc(value, field);
  if (value.*field != expected) {
    throw IntegrityError(ErrorCode::checksum_mismatch, "the structure is damaged",
                         {.section = section,
                          .field = name,
                          .offset = at,
                          .value = fmt::format("{:#010x}", std::uint32_t{value.*field}),
                          .bound = fmt::format("{:#010x} as computed", expected)});
  }
}

}  // namespace

void check_header(const format::Header& header, std::uint64_t file_size, const ReadLimits& limits) {
  format::validate_identity(header);
  check_self_crc(header, &format::Header::header_crc32, "header", "header_crc32",
                 offsetof(format::Header, header_crc32));
  format::validate_header(header, file_size, limits);
}

bool header_crc_holds(const format::Header& header) {
  return header.header_crc32 == self_crc(header, &format::Header::header_crc32);
}

const format::DirectoryHeader& check_directory_header(ByteSpan file, const format::Header& header,
                                                      const ReadLimits& limits) {
  const auto& directory =
      format::overlay<format::DirectoryHeader>(file, header.directory_offset, "directory");
  check_self_crc(directory, &format::DirectoryHeader::directory_crc32, "directory",
                 "directory_crc32",
                 header.directory_offset + offsetof(format::DirectoryHeader, directory_crc32));
  format::validate_directory_header(directory, header, limits);
  return directory;
}

}  // namespace thalia::container
