// Where in a region's state the tensors of a file belong. docs/format/states.md, "States".
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "thalia/region.h"
#include "thalia/state/value.h"

namespace thalia::state {

/// A tensor of a region's file.
struct PlacedTensor {
  std::string_view name;
  const std::string& path;  ///< valid during the visit alone: paths together may be far longer than
                            ///< the text that they come from
  const Value* found;       ///< what the state has there; nullptr if it has nothing
};

/// Visits all tensors of a region: first those that the `thalia_state` of its metadata names, then
/// the others, where FreePlaces has them. In time that their number and the metadata's length
/// bound.
/// @param state of the region, as it was loaded, or an empty object.
/// @throws as load_tree().
void for_each_placed(const RegionView& region, const Value& region_metadata, const Value& state,
                     const std::function<void(const PlacedTensor&, const TensorView&)>& visit,
                     const ReadLimits& limits);

}  // namespace thalia::state
