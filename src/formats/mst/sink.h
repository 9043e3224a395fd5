// .mst files, written through the interface of all formats.
#pragma once

#include <string_view>

#include "formats/source/tensor_sink.h"

namespace thalia::formats {

/// A WriteTensors. In the compression, zstd and its level count; without them, and for all else,
/// what the metadata say of the file that the tensors are from.
std::uint64_t write_mst(const std::filesystem::path& output, const SinkInput& input,
                        const SinkOptions& options, const EmitPayload& emit);

/// As FormatRow::is_made_of.
bool is_mst_made_of(const SinkInput& input, std::string_view metadata, unsigned max_json_depth);

}  // namespace thalia::formats
