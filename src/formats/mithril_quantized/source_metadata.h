// What a quantized tensor has beside its arrays, as the metadata of a .thalia file hold it.
// docs/format/mithril.md, "Through a .thalia file".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/mithril.h"

namespace thalia::formats::mithril_quantized {

inline constexpr std::string_view kFormatName = "mithril-quantized";
// The names of the tensors that a file is read as.
inline constexpr std::string_view kCodes = "codes";
inline constexpr std::string_view kScales = "scales";
inline constexpr std::string_view kZeroPoints = "zero_points";

struct MithrilSourceMetadata {
  MithrilMethod method = MithrilMethod::int8_linear;
  DType original_dtype = DType::f32;
  std::optional<std::uint64_t> group_size{};
  int level = 3;
};
std::string source_metadata_to_json(const MithrilSourceMetadata& source);

struct ReadSourceMetadata {
  std::optional<MithrilSourceMetadata> source{};  ///< nullopt: the metadata are of no such file
  std::vector<std::string> other_members{};       ///< what has no place in such a file
};
/// @throws FormatError where the text is no JSON object.
ReadSourceMetadata source_metadata_from_json(std::string_view metadata_json,
                                             unsigned max_json_depth);

}  // namespace thalia::formats::mithril_quantized
