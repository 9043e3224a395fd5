// Quantized tensors of the original mithril program, written through the interface of all formats.
#pragma once

#include "formats/source/tensor_sink.h"

namespace thalia::formats {

/// A WriteTensors for what open_mithril_quantized_file() gives without `dequantize`, with its
/// metadata: nothing is quantized here. @throws UnsupportedError for any other tensors and
/// metadata.
std::uint64_t write_mithril_quantized(const std::filesystem::path& output, const SinkInput& input,
                                      const SinkOptions& options, const EmitPayload& emit);

}  // namespace thalia::formats
