// A whole MCKP file as its header and the places of its blocks. docs/format/mckp.md.
#pragma once

#include <string>
#include <vector>

#include "formats/mckp/header.h"
#include "thalia/formats/mckp.h"

namespace thalia::formats {

struct ParsedMckp {
  MckpHeader header;
  std::vector<MckpTensor> tensors;  ///< their blocks follow each other and lie in the file
  std::uint64_t checksum = 0;       ///< of everything before the footer
  bool header_is_checked = false;   ///< its frame had a checksum of its own
};

/// Reads prelude, header and footer. @throws as MckpFile::open(), without the path.
ParsedMckp parse_mckp(ByteSpan file, const ReadLimits& limits);

/// The payload of a tensor of `file`, after comparing its block's header and, if `check` asks for
/// it, the checksum. @throws FormatError (inconsistent), IntegrityError.
ByteSpan mckp_payload(ByteSpan file, const MckpTensor& tensor, bool check);

/// @throws IntegrityError where the file's checksum is wrong.
void check_mckp_checksum(ByteSpan file, const ParsedMckp& parsed);

}  // namespace thalia::formats
