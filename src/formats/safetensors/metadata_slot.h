// Where "__metadata__" is in the text of a header, so that it can be changed and all else stay.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace thalia::formats::safetensors {

/// Bytes [begin, end) of a header's text.
struct MetadataSlot {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The value of the member, with the spaces after it. nullopt where the text, which is a header
/// that was parsed, has none.
std::optional<MetadataSlot> find_metadata_slot(std::string_view header);

}  // namespace thalia::formats::safetensors
