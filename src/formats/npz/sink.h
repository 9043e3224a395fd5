// Writes .npy and .npz files of tensors that come in pieces. The types WriteTensors of
// tensor_sink.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "formats/source/tensor_sink.h"

namespace thalia::formats {

/// Deflated where the metadata of the input say that its file was, or the options ask for a codec
/// other than store: the format has this one only. A tensor that goes back to Fortran order is held
/// in memory twice, others a piece at a time.
std::uint64_t write_npz(const std::filesystem::path& output, const SinkInput& input,
                        const SinkOptions& options, const EmitPayload& emit);
/// @throws UnsupportedError also if there is not exactly one tensor.
std::uint64_t write_npy(const std::filesystem::path& output, const SinkInput& input,
                        const SinkOptions& options, const EmitPayload& emit);

/// As FormatRow::is_note_only, of both formats.
bool is_npz_note_only(std::string_view metadata, unsigned max_json_depth);

}  // namespace thalia::formats
