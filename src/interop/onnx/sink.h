// Tensors as an ONNX model.
#pragma once

#include <cstdint>
#include <filesystem>

#include "interop/shared/tensor_sink.h"

namespace thalia::interop {

/// A WriteTensors.
std::uint64_t write_onnx(const std::filesystem::path& output, const SinkInput& input,
                         const SinkOptions& options, const EmitPayload& emit);

}  // namespace thalia::interop
