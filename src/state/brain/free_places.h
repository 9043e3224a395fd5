// Where a region's state has the tensors that no tree names. docs/format/states.md, "States".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>

#include "thalia/state/value.h"
#include "thalia/tensor.h"

namespace thalia::state {

/// Gives each tensor a place that nothing else has. Anybody who needs such a place asks here, and
/// for all of these tensors in the file's order: the places depend on each other.
class FreePlaces {
 public:
  struct Place {
    std::string component;
    std::string name;
  };

  /// @param state without these tensors when their component is first asked for. Borrowed.
  explicit FreePlaces(const Value& state) : state_(state) {}

  /// A member of the component of the role, under its own name as a rule. "~2" and so on follow
  /// a name that is taken, and after that of a component that is no object.
  Place take(Role role, std::string_view wanted);

 private:
  struct Component {
    std::string name;
    std::unordered_set<std::string> taken;
  };
  const Value& state_;
  std::map<std::string_view, Component> components_;  ///< by the names that roles give them
};

}  // namespace thalia::state
