#include "state/brain/free_places.h"

#include <fmt/format.h>

#include "thalia/state/brain.h"

namespace thalia::state {
namespace {

// The first of NAME, NAME~2, NAME~3 and so on of which `is_free` is true.
template <typename IsFree>
std::string first_free(std::string_view wanted, const IsFree& is_free) {
  std::string name(wanted);
  for (int n = 2; !is_free(name); ++n) name = fmt::format("{}~{}", wanted, n);
  return name;
}

}  // namespace

FreePlaces::Place FreePlaces::take(Role role, std::string_view wanted) {
  const auto [at, is_new] = components_.try_emplace(component_of_role(role));
  Component& component = at->second;
  if (is_new) {
    const Value* found = nullptr;
    component.name = first_free(at->first, [&](const std::string& name) {
      found = state_.find(name);
      return found == nullptr || found->is_object();
    });
    if (found != nullptr)
      for (const auto& [name, member] : found->members()) component.taken.insert(name);
  }
  return {component.name, first_free(wanted, [&](const std::string& name) {
            return component.taken.insert(name).second;
          })};
}

}  // namespace thalia::state
