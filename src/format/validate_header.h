// The file header against the rules of docs/format/format.md, "Header". No I/O, no allocation but
// for an error.
#pragma once

#include <cstdint>

#include "format/header.h"
#include "thalia/options.h"

namespace thalia::format {

/// Magic and version only: is this a file for us at all? @throws FormatError (bad_magic),
/// UnsupportedError.
void validate_identity(const Header& header);

/// Everything but the CRC: flags, enumerators, limits, and that every section lies inside the file
/// where the layout allows it.
void validate_header(const Header& header, std::uint64_t file_size, const ReadLimits& limits);

}  // namespace thalia::format
