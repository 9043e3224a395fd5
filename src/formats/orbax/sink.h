// Folders that look like Orbax's, as the original mithril program writes them, written through the
// interface of all formats.
#pragma once

#include <string_view>

#include "formats/source/tensor_sink.h"

namespace thalia::formats {

/// A WriteTensors whose output is a folder: a new one, or in place of an empty one. A folder with
/// something in it is never replaced: UsageError (exists). Among the options, output and work
/// count.
std::uint64_t write_orbax(const std::filesystem::path& output, const SinkInput& input,
                          const SinkOptions& options, const EmitPayload& emit);

/// As FormatRow::is_made_of.
bool is_orbax_made_of(const SinkInput& input, std::string_view metadata, unsigned max_json_depth);

}  // namespace thalia::formats
