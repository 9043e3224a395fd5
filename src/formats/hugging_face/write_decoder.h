// A decoder of Hugging Face as a .entity file. docs/format/loom.md, "Decoders of Hugging Face".
#pragma once

#include "formats/source/tensor_sink.h"

namespace thalia::formats {

/// What has a config.json and is not read from a file of loom is a decoder, by the names of its
/// tensors; all else goes to write_entity(). One tensor is in memory at a time. @throws
/// FormatError naming the member of config.json; UnsupportedError naming the tensors that are
/// missing or have no place.
std::uint64_t write_entity_of_model(const std::filesystem::path& output, const SinkInput& input,
                                    const SinkOptions& options, const EmitPayload& emit);

}  // namespace thalia::formats
