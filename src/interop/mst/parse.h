// The header of a .mst file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "thalia/mst.h"

namespace thalia::interop {

inline constexpr std::string_view kMstMagic{"MST\0", 4};

struct ParsedMst {
  std::vector<MstTensor> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
  int level = 0;
  bool byte_grouping = false;
};

/// @throws as MstFile::open(), without the path.
ParsedMst parse_mst(ByteSpan file, const ReadLimits& limits);

/// Bytes of an element whose bytes the original groups: 2 or 4, and 0 for types that it leaves.
unsigned mst_plane_width(DType dtype) noexcept;

}  // namespace thalia::interop
