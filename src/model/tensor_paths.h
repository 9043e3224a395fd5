// Where in a region's state the tensors of a file belong. docs/states.md, "States".
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "thalia/region.h"
#include "thalia/value.h"

namespace thalia::model {

/// Paths by names, of the tensors that the `thalia_state` of a region's metadata names.
std::unordered_map<std::string, std::string> paths_of_names(const Value& region_metadata);

/// Of a tensor, which these paths name, or which stands under its own name in the component of its
/// role.
std::string path_of(const TensorView& tensor,
                    const std::unordered_map<std::string, std::string>& paths);

}  // namespace thalia::model
