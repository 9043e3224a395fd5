// What a .thalia file holds of a file of loom: {"format":NAME,NAME:{"network":…,"transformer":…,
// "blobs":[…]}}, the header of a .entity file without places.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/loom/document.h"

namespace thalia::formats::loom {

enum class LoomFileKind { entity, checkpoint };
/// "entity", "loom_json".
std::string_view kind_name(LoomFileKind kind) noexcept;

std::string source_metadata_to_json(LoomFileKind kind, const Document& document);

struct LoomSourceMetadata {
  LoomFileKind kind = LoomFileKind::entity;
  Document document;
};
/// nullopt unless the metadata are as above; they may have been edited since.
/// @param other_keys gets the names of all other members. @throws FormatError where the text is no
/// JSON object.
std::optional<LoomSourceMetadata> source_metadata_from_json(std::string_view metadata,
                                                            const ReadLimits& limits,
                                                            std::vector<std::string>& other_keys);

}  // namespace thalia::formats::loom
