// The element types of views in a tree of thalia_checkpoint, where what they are views of gets
// another type.
#pragma once

#include <string>
#include <unordered_map>

#include "thalia/state/value.h"
#include "thalia/types.h"

namespace thalia::formats::pt {

/// By the tensor's name.
struct ChangedType {
  DType from = DType::f32;
  DType to = DType::f32;
};
using ChangedTypes = std::unordered_map<std::string, ChangedType>;

/// Gives each view of a changed tensor that has the type that it had the type that it gets.
/// @param saved the metadata's member. Nodes that break the rules stay as they are.
void change_view_types(Value& saved, const ChangedTypes& changed);

}  // namespace thalia::formats::pt
