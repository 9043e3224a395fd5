// Tensors as a safetensors file, or as a model of several.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "formats/source/tensor_sink.h"

namespace thalia::formats {

/// With options.shard_bytes a model as save_model() writes it. Without, a file; or
/// where the output is a folder or an index, the files that the source had, if it was such a model
/// with these tensors, else one file in the folder. Headers and index come back as the source had
/// them where tensors and texts are still the same. Dense tensors only.
/// @throws as save_model(). A model of .thalia files that the folder has stays.
std::uint64_t write_safetensors_tensors(const std::filesystem::path& output, const SinkInput& input,
                                        const SinkOptions& options, const EmitPayload& emit);

/// As FormatRow::is_made_of.
bool is_safetensors_made_of(const SinkInput& input, std::string_view metadata,
                            unsigned max_json_depth);

/// As FormatRow::is_note_only.
bool is_safetensors_note_only(std::string_view metadata, unsigned max_json_depth);

}  // namespace thalia::formats
