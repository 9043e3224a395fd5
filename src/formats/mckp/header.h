// The JSON header of an MCKP file. docs/format/mckp.md, "Header".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/mckp.h"

namespace thalia::formats {

/// Keys in the order of docs/format/mckp.md. Metadata and parameters have been checked to be
/// objects.
std::string make_mckp_header(const MckpHeader& header, const std::vector<MckpTensor>& tensors);

struct ParsedMckpHeader {
  MckpHeader header;
  std::vector<MckpTensor> tensors;
};

/// Checks what the text alone tells: types, names, dtypes, sizes of shapes, sums. @throws
/// FormatError, UnsupportedError.
ParsedMckpHeader parse_mckp_header(std::string_view json, const ReadLimits& limits);

}  // namespace thalia::formats
