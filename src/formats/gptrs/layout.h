// What comes before the payloads of a file that is written. docs/format/gptrs.md, "Layout".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/gptrs.h"

namespace thalia::formats::gptrs {

struct GptrsPlannedTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape{};
  std::uint8_t requires_grad = 0;
  bool store_id = true;  ///< of a checkpoint
};

struct GptrsPlannedFile {
  std::string start;  ///< all bytes up to the first payload
  std::uint64_t data_bytes = 0;
};

/// Plans a file of tensors in the order of the file, in which their payloads lie without gaps.
/// @param config_text of a checkpoint; not checked here.
/// @throws UsageError (duplicate); UnsupportedError for a name, a dtype (f16 and bf16 unless
/// `half_types`), a scalar, sizes beyond the format's fields.
GptrsPlannedFile plan_file(GptrsFormat format, const std::vector<GptrsPlannedTensor>& tensors,
                           std::string_view config_text, bool half_types);

}  // namespace thalia::formats::gptrs
