// Writing a model and the file with its data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/onnx/wire.h"
#include "formats/source/tensor_sink.h"
#include "thalia/formats/onnx.h"

namespace thalia::formats::onnx {

struct OnnxWriteOptions {
  std::optional<bool> external_data{};
  OutputOptions output{};
  std::vector<std::filesystem::path> sources{};  ///< as SinkOptions::sources
  Work work{};
  std::uint64_t most_model_bytes = kMostMessageBytes;  ///< less for tests alone
};

/// @param checked called when nothing but the writing can fail. @throws as save_onnx().
/// @return bytes of both files.
std::uint64_t write_model(const std::filesystem::path& path, const std::vector<SinkTensor>& tensors,
                          const OnnxMetadata& metadata, OnnxModel model,
                          const OnnxWriteOptions& options, const std::function<void()>& checked,
                          const EmitPayload& emit);

}  // namespace thalia::formats::onnx
