// Files of loom as sources and sinks of tensors: a tensor for each blob, or each layer with
// weights, under its path. docs/format/loom.md.
#pragma once

#include "formats/source/opened_file.h"
#include "formats/source/tensor_sink.h"

namespace thalia::formats {

std::shared_ptr<const OpenedFile> open_entity_file(const io::InputFile& input,
                                                   const OpenOptions& options);
std::shared_ptr<const OpenedFile> open_loom_json_file(const io::InputFile& input,
                                                      const OpenOptions& options);

/// What was read from a file of either kind is written as either kind: as the same kind byte for
/// byte, as the other as the original would. @throws UnsupportedError for anything else, because
/// the files are of networks, and tensors alone are not one.
std::uint64_t write_entity(const std::filesystem::path& output, const SinkInput& input,
                           const SinkOptions& options, const EmitPayload& emit);
std::uint64_t write_loom_json(const std::filesystem::path& output, const SinkInput& input,
                              const SinkOptions& options, const EmitPayload& emit);

}  // namespace thalia::formats
