// Which path of the state each tensor of a region has, without loading the tensors: the walk of
// load_region.cc over the metadata alone. `state`, where given, is the loaded state, which has the
// tree's shape; both are walked side by side. Paths are built in one string, since together they
// may be far longer than the text that they come from.

#include "state/brain/tensor_paths.h"

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "state/brain/free_places.h"
#include "state/brain/stored_region.h"

namespace thalia::state {
namespace {

using Visit = std::function<void(const PlacedTensor&, const TensorView&)>;

bool has_text(const Value& object, std::string_view member, std::string_view text) {
  const Value* found = object.find(member);
  return found != nullptr && found->kind() == Value::Kind::string && found->as_string() == text;
}

// The member of an object that was made from the tree's object. It is at the same place as a rule,
// which spares a search by name in large objects.
const Value* same_member(const Value* object, std::size_t place, const std::string& name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto& members = object->members();
  if (place < members.size() && members[place].name == name) return &members[place].value;
  return object->find(name);
}

class Walk {
 public:
  Walk(const RegionView& region, const Visit& visit) : region_(region), visit_(visit) {}

  void tree(const Value& tree, const Value* state) {
    const std::size_t here = path_.size();
    if (tree.is_array()) {
      const bool has_elements = state != nullptr && state->is_array();
      for (std::size_t i = 0; i < tree.size(); ++i) {
        path_ += '[' + std::to_string(i) + ']';
        this->tree(tree.elements()[i],
                   has_elements && i < state->size() ? &state->elements()[i] : nullptr);
        path_.resize(here);
      }
    }
    if (!tree.is_object()) return;
    if (has_text(tree, "_type", "tensor")) {
      const Value* name = tree.find("_name");
      if (name != nullptr && name->kind() == Value::Kind::string) tensor(name->as_string(), state);
      return;
    }
    const Value* escaped = has_text(tree, "_type", "object") ? tree.find("_members") : nullptr;
    if (escaped != nullptr) return this->tree(*escaped, state);
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const auto& [name, member] = tree.members()[i];
      if (here != 0) path_ += '.';
      path_ += name;
      this->tree(member, same_member(state, i, name));
      path_.resize(here);
    }
  }

  void others(const Value& state, const ReadLimits& limits) {
    // An index for each component, so that many unnamed tensors do not take quadratic time.
    std::unordered_map<const Value*, std::unordered_map<std::string_view, const Value*>> members;
    std::optional<Value> tree;
    std::optional<FreePlaces> places;
    for (std::uint32_t i = 0; i < region_.tensor_count(); ++i) {
      const TensorView view = region_.tensor(i);
      if (named_.contains(view.name())) continue;
      // `state` has these tensors already: their places are free in the tree alone.
      if (!places) places.emplace(tree.emplace(load_tree(region_, limits)));
      const FreePlaces::Place place = places->take(view.role(), view.name());
      const Value* found = state.find(place.component);
      if (found != nullptr && found->is_object()) {
        const auto [known, is_new] = members.try_emplace(found);
        if (is_new)
          for (const auto& [name, value] : found->members()) known->second.emplace(name, &value);
        const auto member = known->second.find(place.name);
        found = member == known->second.end() ? nullptr : member->second;
      } else {
        found = nullptr;
      }
      path_.assign(place.component).append(".").append(place.name);
      visit_({view.name(), path_, found}, view);
    }
  }

 private:
  void tensor(const std::string& name, const Value* found) {
    const std::optional<TensorView> view = region_.find(name);
    // If a name is there twice, the first place counts.
    if (view && named_.insert(view->name()).second) visit_({view->name(), path_, found}, *view);
  }

  const RegionView& region_;
  const Visit& visit_;
  std::string path_;
  std::unordered_set<std::string_view> named_;  ///< names lie in the file
};

}  // namespace

void for_each_placed(const RegionView& region, const Value& region_metadata, const Value& state,
                     const Visit& visit, const ReadLimits& limits) {
  Walk walk(region, visit);
  const Value* tree = region_metadata.find("thalia_state");
  const Value* components = tree == nullptr ? nullptr : tree->find("components");
  if (components != nullptr) walk.tree(*components, &state);
  walk.others(state, limits);
}

}  // namespace thalia::state
