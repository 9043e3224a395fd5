// Writing GPTRSCHK and GPTRSTEN files of tensors from anywhere. Each is a WriteTensors.
// docs/format/gptrs.md, "What other files become".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "formats/source/tensor_sink.h"

namespace thalia::formats {

/// A checkpoint. @throws UnsupportedError for a dtype, an encoding, a name; IoError.
std::uint64_t write_gptrs(const std::filesystem::path& output, const SinkInput& input,
                          const SinkOptions& options, const EmitPayload& emit);
/// An archive.
std::uint64_t write_gptrsten(const std::filesystem::path& output, const SinkInput& input,
                             const SinkOptions& options, const EmitPayload& emit);

/// As FormatRow::is_made_of.
bool is_gptrs_made_of(const SinkInput& input, std::string_view metadata, unsigned max_json_depth);

}  // namespace thalia::formats
