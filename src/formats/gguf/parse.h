// The header of a GGUF file, and where its tensors lie.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "thalia/formats/gguf.h"

namespace thalia::formats::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr std::uint32_t kVersion = 3;

struct Parsed {
  unsigned version = 0;
  std::uint32_t alignment = 0;
  GgufKeyValues key_values;
  std::vector<GgufTensor> tensors;  ///< in the order of the header; bytes in the file
  /// Bytes between tensors and after the last one, beyond what the alignment asks for.
  std::uint64_t unused_bytes = 0;
};

/// @throws as GgufFile::open(), without the path.
Parsed parse_file(ByteSpan file, const ReadLimits& limits);

}  // namespace thalia::formats::gguf
