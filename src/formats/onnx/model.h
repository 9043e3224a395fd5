// A ModelProto: what it says of itself, its tensors, and what else it holds. After parse_model()
// names are different, texts are UTF-8, and each tensor is as parse_tensor_proto() leaves it.
#pragma once

#include <optional>
#include <vector>

#include "formats/onnx/file.h"
#include "formats/onnx/tensor_proto.h"

namespace thalia::formats::onnx {

/// What reading a tensor takes.
struct OnnxStored {
  TensorProto values{};
  std::optional<TensorProto> indices{};  ///< of a sparse tensor
};

struct ParsedModel {
  OnnxModel model{};
  OnnxMetadata metadata{};
  OnnxGraph graph{};
  std::vector<OnnxTensor> tensors{};
  std::vector<OnnxStored> stored{};  ///< of each of them
};

/// @param constants also the tensors in nodes. @throws FormatError, UnsupportedError.
ParsedModel parse_model(ByteSpan file, bool constants, const ReadLimits& limits);

}  // namespace thalia::formats::onnx
