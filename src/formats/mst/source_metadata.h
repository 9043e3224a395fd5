// What a .mst file holds beside its tensors, as the metadata of a .thalia file hold it.
// docs/format/mithril.md, "Through a .thalia file".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/formats/mithril.h"

namespace thalia::formats::mst {

struct MstSourceMetadata {
  std::uint32_t version = 1;
  int level = 3;
  bool byte_grouping = true;
  std::vector<std::pair<std::string, std::string>> metadata{};
  std::vector<std::string> order{};          ///< of the frames, by name
  std::vector<std::size_t> header_order{};   ///< as MstFile::header_order()
  std::vector<std::string> other_members{};  ///< what has no place in a .mst file
};

std::string source_metadata_to_json(const MstFile& file);
/// Reads the metadata of any .thalia file. Texts that are not a .mst file's become metadata.
/// @throws FormatError if it is not a JSON object.
MstSourceMetadata source_metadata_from_json(std::string_view metadata_json,
                                            unsigned max_json_depth);

}  // namespace thalia::formats::mst
