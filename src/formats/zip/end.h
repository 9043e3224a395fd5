// The end of a zip archive, which says where its directory lies.
#pragma once

#include <cstdint>
#include <string_view>

#include "thalia/types.h"

namespace thalia::formats {

struct ZipEnd {
  std::uint64_t directory_offset = 0;
  std::uint64_t directory_bytes = 0;
  std::uint64_t members = 0;
  std::string_view comment;  ///< in the file
  bool zip64 = false;        ///< there is a zip64 record
};

/// The directory lies in the file and ends where the record of the end begins. @throws FormatError;
/// UnsupportedError for an archive on several disks.
ZipEnd find_zip_end(ByteSpan file);

}  // namespace thalia::formats
