// The components of a region: which role each has in a file, and how paths lead into their trees. A
// path joins names with dots and array elements as "[3]". Names may hold dots themselves, so that a
// path can be ambiguous; the first member that leads to something counts. Finding never changes a
// region: only make() adds a component.

#include "thalia/state/brain.h"

#include <array>
#include <charconv>
#include <utility>

#include "state/value/python_value.h"

namespace thalia {
namespace {

struct ComponentRole {
  std::string_view component;
  Role role;
};

// If two components have one role, the first is that of tensors that no state names.
constexpr std::array<ComponentRole, 15> kComponents{{
    {component::kWeights, Role::weights},
    {component::kBiases, Role::bias},
    {component::kNormalization, Role::normalization},
    {component::kEmbeddings, Role::embedding},
    {component::kHomeostatic, Role::homeostatic},
    {component::kRegionState, Role::region_state},
    {component::kNeuronState, Role::region_state},
    {component::kLearningState, Role::learning_state},
    {component::kOscillators, Role::oscillator},
    {"oscillators", Role::oscillator},
    {component::kNeuromodulators, Role::neuromodulator},
    {"neuromodulators", Role::neuromodulator},
    {component::kOptimizer, Role::optimizer},
    {component::kBuffers, Role::buffer},
    {component::kOther, Role::other},
}};

const Value* find_below(const Value& tree, std::string_view path);

// `path` begins with '['; the number ends at the ']'.
const Value* find_element(const Value& array, std::string_view path) {
  std::size_t i = 0;
  const char* end = path.data() + path.size();
  const auto [stopped, error] = std::from_chars(path.data() + 1, end, i);
  if (error != std::errc() || stopped == end || *stopped != ']' || i >= array.size()) {
    return nullptr;
  }
  return find_below(array.elements()[i], path.substr(stopped + 1 - path.data()));
}

// What a reference to a component that does not exist refers to.
const Value kNoComponent = Value::object();

// `path` begins with what follows the value's own name: ".name", "[3]", or nothing.
const Value* find_below(const Value& tree, std::string_view path) {
  if (const Value* value = state::python_value(tree)) return find_below(*value, path);
  if (path.empty()) return &tree;
  if (tree.is_array() && path.front() == '[') return find_element(tree, path);
  if (!tree.is_object() || path.front() != '.') return nullptr;
  const std::string_view rest = path.substr(1);
  for (const auto& [name, member] : tree.members()) {
    // Not split at the dots: a name may have some. If this member leads nowhere, the next is
    // tried.
    if (!rest.starts_with(name)) continue;
    if (const Value* found = find_below(member, rest.substr(name.size()))) return found;
  }
  return nullptr;
}

// One string for all paths, lengthened and cut again: trees may have very many leaves.
template <typename Tree, typename Visit>
void walk(Tree& tree, std::string& path, const Visit& visit) {
  const std::size_t here = path.size();
  if (tree.is_tensor()) {
    visit(path, tree.as_tensor());
  } else if (tree.is_object()) {
    const Value* const value = state::python_value(std::as_const(tree));
    for (auto& [name, member] : tree.members()) {
      if (&member != value) {
        if (here != 0) path += '.';
        path += name;
      }
      walk(member, path, visit);
      path.resize(here);
    }
  } else if (tree.is_array()) {
    for (std::size_t i = 0; i < tree.size(); ++i) {
      path += '[' + std::to_string(i) + ']';
      walk(tree.elements()[i], path, visit);
      path.resize(here);
    }
  }
}

}  // namespace

Role role_of_component(std::string_view name) noexcept {
  for (const auto& [component, role] : kComponents) {
    if (component == name) return role;
  }
  return Role::other;
}

std::string_view component_of_role(Role role) noexcept {
  for (const auto& [component, of_component] : kComponents) {
    if (of_component == role) return component;
  }
  return component::kOther;
}

ComponentRef::operator const Value&() const {
  const Value* found = std::as_const(state_).find(name_);
  return found == nullptr ? kNoComponent : *found;
}

const Value* ComponentRef::find(std::string_view member) const noexcept {
  const Value* found = std::as_const(state_).find(name_);
  return found == nullptr ? nullptr : found->find(member);
}

Value* ComponentRef::find(std::string_view member) noexcept {
  return const_cast<Value*>(std::as_const(*this).find(member));
}

const Value& ComponentRef::at(std::string_view member) const {
  return static_cast<const Value&>(*this).at(member);
}

Value& ComponentRef::at(std::string_view member) {
  return const_cast<Value&>(std::as_const(*this).at(member));
}

std::size_t ComponentRef::size() const noexcept {
  const Value* found = std::as_const(state_).find(name_);
  return found == nullptr ? 0 : found->size();
}

bool ComponentRef::erase(std::string_view member) {
  Value* found = state_.find(name_);
  return found != nullptr && found->erase(member);
}

Value& ComponentRef::make() {
  Value& found = state_[name_];
  if (found.is_null()) found = Value::object();
  return found;
}

const Value& BrainRegion::component(std::string_view name) const noexcept {
  const Value* found = find(name);
  return found == nullptr ? kNoComponent : *found;
}

const Value* BrainRegion::find_path(std::string_view path) const {
  return find_below(state, "." + std::string(path));
}

Value* BrainRegion::find_path(std::string_view path) {
  return const_cast<Value*>(std::as_const(*this).find_path(path));
}

void for_each_tensor(const Value& tree,
                     const std::function<void(const std::string& path, const Tensor&)>& visit) {
  std::string path;
  walk(tree, path, visit);
}

void for_each_tensor(Value& tree,
                     const std::function<void(const std::string& path, Tensor&)>& visit) {
  std::string path;
  walk(tree, path, visit);
}

}  // namespace thalia
