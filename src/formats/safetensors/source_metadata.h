// What a .thalia file made from a safetensors file, or from a model of several, remembers of it in
// its metadata: {"format":"safetensors","safetensors":{…}}. docs/format/safetensors.md, "Through
// .thalia".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/safetensors/kept_header.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats {

namespace safetensors {
/// One file of a model.
struct SourceModelFile {
  std::string name{};
  std::optional<SafetensorsMetadata> metadata{};
  KeptHeader header{};
};
/// A model of several files.
struct SourceModel {
  std::string index_name;
  std::string index_text;
  std::optional<std::uint64_t> tensor_bytes{};  ///< where the index counts otherwise
  std::vector<SourceModelFile>
      files{};  ///< those of which there is more to say than the index does
};
}  // namespace safetensors

struct SafetensorsSourceMetadata {
  /// The metadata of the file, or of those files of a model that are not listed.
  std::optional<SafetensorsMetadata> metadata;
  /// Keys of the metadata that are no part of the above, in order: what a safetensors file loses.
  std::vector<std::string> other_keys;
  safetensors::KeptHeader header{};  ///< of the file
  std::optional<safetensors::SourceModel> model{};
  /// Members with a text: what `other_keys` has of these, a safetensors file need not lose.
  SafetensorsMetadata texts{};
  bool found = false;  ///< the metadata are of a safetensors file
};

std::string source_metadata_to_json(const std::optional<SafetensorsMetadata>& metadata);
/// Writes `metadata`, `header` and `model`.
std::string source_metadata_to_json(const SafetensorsSourceMetadata& source);

/// For the metadata of any .thalia file. @throws FormatError if it is no JSON object.
SafetensorsSourceMetadata source_metadata_from_json(std::string_view metadata_json,
                                                    unsigned max_json_depth);

}  // namespace thalia::formats
