// Writing .pt files: what conversions write through.
#pragma once

#include "formats/source/tensor_sink.h"

namespace thalia::formats::pt {

/// As torch.save does: a zip archive whose data.pkl torch.load opens with weights_only=True. The
/// object is the one that the metadata describes, else a dictionary of the tensors. In
/// options.save, output and work count. A WriteTensors.
std::uint64_t write_pt(const std::filesystem::path& output, const SinkInput& input,
                       const SinkOptions& options, const EmitPayload& emit);

}  // namespace thalia::formats::pt
