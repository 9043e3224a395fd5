// What a .thalia file made of a GGUF file remembers of it in its metadata:
// {"format":"gguf","gguf":{"key_values":{…},"tensors":{…}}}. docs/format/gguf.md, "Through a
// .thalia file".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/gguf.h"

namespace thalia::formats::gguf {

struct SourceTensorType {
  std::string name;
  GgmlType type = GgmlType::f32;
  Shape shape{};  ///< of elements; of types in blocks
};

std::string source_metadata_to_json(const GgufKeyValues& key_values,
                                    const std::vector<SourceTensorType>& tensors);

struct GgufSourceMetadata {
  GgufKeyValues key_values{};  ///< for a file: with general.architecture, keys all different
  std::vector<SourceTensorType> tensors{};  ///< in the order that the file had
  std::vector<std::string> lost{};          ///< members that GGUF has no place for
};

/// For the metadata of any .thalia file: what somebody has edited counts if it fits, and is lost
/// if it does not. @throws FormatError if it is no JSON object.
GgufSourceMetadata source_metadata_from_json(std::string_view metadata_json,
                                             unsigned max_json_depth);

}  // namespace thalia::formats::gguf
