// Members of a large object by name: Value::find() goes through all of them.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "thalia/state/value.h"

namespace thalia::state {

/// The place of each name; where a name occurs twice, the first. The names lie in the object, which
/// must not grow beyond its capacity meanwhile.
inline std::unordered_map<std::string_view, std::size_t> member_places(const Value& object) {
  std::unordered_map<std::string_view, std::size_t> places;
  places.reserve(object.size());
  for (std::size_t i = 0; i < object.size(); ++i) places.emplace(object.members()[i].name, i);
  return places;
}

}  // namespace thalia::state
