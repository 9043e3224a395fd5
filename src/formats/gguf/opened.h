// GGUF files as conversions and commands read and write them.
#pragma once

#include <string_view>

#include "formats/source/opened_file.h"
#include "formats/source/tensor_sink.h"

namespace thalia::formats::gguf {

/// An OpenFormat. Blocks are u8 tensors of shape [outer extents…, bytes of a row], or with
/// OpenOptions::dequantize their elements as f32. @throws as GgufFile::open(); UnsupportedError,
/// with dequantize, for a type of block that dequantize_ggml() lacks.
std::shared_ptr<const OpenedFile> open_gguf_file(const io::InputFile& input,
                                                 const OpenOptions& options);

/// A WriteTensors. In another format's metadata, texts, numbers and truth values become key/values,
/// and general.architecture is "unknown" unless they say it. @throws UnsupportedError naming the
/// tensor, for a dtype or an encoding that ggml lacks, more than 4 dimensions and, without
/// SinkOptions::all_types, names of 64 bytes and more.
std::uint64_t write_gguf(const std::filesystem::path& output, const SinkInput& input,
                         const SinkOptions& options, const EmitPayload& emit);

/// As FormatRow::is_made_of.
bool is_gguf_made_of(const SinkInput& input, std::string_view metadata, unsigned max_json_depth);

}  // namespace thalia::formats::gguf
