// Metadata of one format in a file of another that has texts for metadata, so that they come back.
// docs/use/formats.md, "Metadata".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "convert/formats.h"

namespace thalia::formats {

struct EmbeddedMetadata {
  std::string metadata = "{}";  ///< a JSON object
  std::optional<std::uint64_t> training_steps{};
};

/// What a file says itself.
EmbeddedMetadata own_metadata(const OpenedFacts& facts);

/// The metadata of another format that a file of the format `from` embeds, if that is all that it
/// says; else what it says itself.
EmbeddedMetadata restored_metadata(const OpenedFacts& facts, const FormatRow& from,
                                   unsigned max_json_depth);

/// For a sink of the format `to` that has texts: the texts that people have put into `metadata`,
/// and all of it and the steps as one more. Metadata of that format itself, none at all, and such
/// of more than 16 MiB stay as they are.
EmbeddedMetadata packed_metadata(const EmbeddedMetadata& metadata, std::string_view to,
                                 unsigned max_json_depth);

}  // namespace thalia::formats
