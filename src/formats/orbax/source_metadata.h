// What a folder holds beside its arrays, as the metadata of a .thalia file hold it.
// docs/format/mithril.md, "Through a .thalia file".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/copy.h"

namespace thalia::formats::orbax {

struct OrbaxSourceMetadata {
  json::Members others{};                   ///< as Metadata::others
  std::vector<std::string> lost_members{};  ///< what has no place in such a folder
};

std::string source_metadata_to_json(const json::Members& others);
/// Reads the metadata of any .thalia file. All members that are not such a folder's become members
/// of the folder's own metadata. @throws FormatError if it is not a JSON object.
OrbaxSourceMetadata source_metadata_from_json(std::string_view metadata_json,
                                              unsigned max_json_depth);

}  // namespace thalia::formats::orbax
