// Tensors as an ONNX model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "formats/source/tensor_sink.h"

namespace thalia::formats {

/// A WriteTensors.
std::uint64_t write_onnx(const std::filesystem::path& output, const SinkInput& input,
                         const SinkOptions& options, const EmitPayload& emit);

/// As FormatRow::is_made_of.
bool is_onnx_made_of(const SinkInput& input, std::string_view metadata, unsigned max_json_depth);

}  // namespace thalia::formats
