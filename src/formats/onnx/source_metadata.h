// What a .thalia file made of a model remembers of it in its metadata:
// {"format":"onnx","onnx":{"ir_version":8,…,"metadata_props":{…}}}. docs/format/onnx.md, "Through a
// .thalia file".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/onnx.h"

namespace thalia::formats::onnx {

/// The property that carries the number of training steps, which a .thalia file has in its header.
inline constexpr std::string_view kTrainingSteps = "thalia.training_steps";

struct OnnxSourceMetadata {
  OnnxModel model{};
  OnnxMetadata metadata{};
  bool external_data = false;
  std::vector<std::string> order{};  ///< of the tensors, by name; empty: any
  /// What becomes less than it was, for SinkOptions::announce.
  std::vector<std::string> losses{};
};

/// Without losses.
std::string source_metadata_to_json(const OnnxSourceMetadata& source);

/// Reads the metadata of any .thalia file. What is not source metadata as above becomes properties:
/// texts as they are, other values as JSON. @throws FormatError if it is not a JSON object.
OnnxSourceMetadata source_metadata_from_json(std::string_view metadata, unsigned max_json_depth);

/// The number that is the last property, which is taken out then.
std::optional<std::uint64_t> take_training_steps(OnnxMetadata& metadata);

}  // namespace thalia::formats::onnx
