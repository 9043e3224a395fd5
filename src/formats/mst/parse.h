// The header of a .mst file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/little_endian.h"
#include "thalia/formats/mithril.h"

namespace thalia::formats {

inline constexpr std::string_view kMstMagic{"MST\0", 4};
inline constexpr std::uint32_t kMstVersion = 1;

struct MstPrelude {
  char magic[4];
  format::le32 version;
  format::le64 header_length;
};
static_assert(sizeof(MstPrelude) == 16);
MstPrelude make_prelude(std::uint32_t version, std::uint64_t header_length) noexcept;

struct ParsedMst {
  std::uint32_t version = 0;
  std::vector<MstTensor> tensors;  ///< in the order of their frames
  /// For each name of the header, in its order, the tensor's place in `tensors`; empty where the
  /// two orders are the same.
  std::vector<std::size_t> header_order;
  std::vector<std::string> other_members;  ///< keys of the header that nothing here knows
  std::vector<std::pair<std::string, std::string>> metadata;
  int level = 0;
  bool byte_grouping = false;
  bool other_bytes = false;  ///< between or after the frames
};

/// @throws as MstFile::open(), without the path.
ParsedMst parse_mst(ByteSpan file, const ReadLimits& limits);

}  // namespace thalia::formats
