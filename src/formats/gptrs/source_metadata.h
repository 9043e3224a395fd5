// What a GPTRSCHK or GPTRSTEN file says beside its tensors, as the metadata of a .thalia file hold
// it. docs/format/gptrs.md, "In a .thalia file".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/formats/gptrs.h"

namespace thalia::formats::gptrs {

struct GptrsSourceMetadata {
  GptrsFormat format = GptrsFormat::checkpoint;
  std::string config{};  ///< of a checkpoint: the text, with a kind
  /// For a checkpoint: whether all ids are stored, or none; nullopt: those of `ids_of`.
  std::optional<bool> all_ids = true;
  std::vector<std::string> ids_of{};
  /// Bytes other than 0, by name.
  std::map<std::string, std::uint8_t, std::less<>> requires_grad{};
  std::vector<std::string> order{};  ///< of the file; empty if it is that of the names' bytes
};

/// Describes an open file. If several entries have one name, the last counts.
GptrsSourceMetadata source_metadata_of(const GptrsFile& file);

/// {"format":"gptrs","gptrs":{…}}
std::string source_metadata_to_json(const GptrsSourceMetadata& source);

struct FoundSourceMetadata {
  std::optional<GptrsSourceMetadata> source{};
  /// The other members of the metadata and their values, in their order.
  std::vector<std::pair<std::string, std::string>> rest{};
};

/// Takes metadata of any source. What is not wholly as source_metadata_to_json() writes it is part
/// of the rest. @throws FormatError for what is no JSON object.
FoundSourceMetadata source_metadata_from_json(std::string_view metadata, const ReadLimits& limits);

}  // namespace thalia::formats::gptrs
