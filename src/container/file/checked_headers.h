// The two structures that are checked before anything else in a file is looked at.
// docs/format/format.md, "Reading".
#pragma once

#include <cstdint>

#include "format/directory.h"
#include "format/header.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::container {

/// Identity, CRC-32, and every field. @param file_size bytes the file has, which may be more than
/// header.file_length. @throws FormatError, UnsupportedError, IntegrityError.
void check_header(const format::Header& header, std::uint64_t file_size, const ReadLimits& limits);

/// Whether header_crc32 is that of the other bytes.
bool header_crc_holds(const format::Header& header);

/// CRC-32 and fields of the directory header in `file`, which `header` has been checked against.
/// @throws FormatError, IntegrityError.
const format::DirectoryHeader& check_directory_header(ByteSpan file, const format::Header& header,
                                                      const ReadLimits& limits);

}  // namespace thalia::container
