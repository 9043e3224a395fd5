// What the text of a safetensors header says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/safetensors.h"

namespace thalia::formats {

struct HeaderTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t begin = 0;  ///< from where the data begin
  std::uint64_t end = 0;
};

struct HeaderContent {
  std::vector<HeaderTensor> tensors;            ///< by offset, then as in the header
  std::optional<SafetensorsMetadata> metadata;  ///< in the order of the header
  std::uint64_t data_bytes = 0;                 ///< of all tensors
};

/// @throws FormatError, UnsupportedError as SafetensorsFile::open(), without the path.
HeaderContent read_header_content(std::string_view text, const ReadLimits& limits);

}  // namespace thalia::formats
