// What a .thalia file made from a safetensors file remembers of it in its metadata:
// {"format":"safetensors","safetensors":{"metadata":{…}}}, the inner object with the keys and the
// order of `__metadata__`, absent where the file had none. docs/states.md, "Conversions".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/safetensors.h"

namespace thalia::interop {

std::string origin_to_json(const std::optional<SafetensorsMetadata>& metadata);

struct SafetensorsOrigin {
  std::optional<SafetensorsMetadata> metadata;
  /// Keys of the metadata that are no part of the above, in order: what a safetensors file loses.
  std::vector<std::string> other_keys;
};

/// For the metadata of any .thalia file. @throws FormatError where it is no JSON object.
SafetensorsOrigin origin_from_json(std::string_view metadata_json, unsigned max_json_depth);

}  // namespace thalia::interop
