#include "model/brain/edit_tree.h"

#include <algorithm>
#include <string_view>

namespace thalia::model {
namespace {

bool is_type(const Value& value, std::string_view type) {
  const Value* found = value.find("_type");
  return found != nullptr && found->kind() == Value::Kind::string && found->as_string() == type;
}

// The entry of `names` for what stands in a tree in the place of a tensor; null for all else.
const NewName* new_name_of(const Value& value, const NewNames& names) {
  if (!is_type(value, "tensor") && !is_type(value, "scalar")) return nullptr;
  const Value* name = value.find("_name");
  if (name == nullptr || name->kind() != Value::Kind::string) return nullptr;
  const auto found = names.find(name->as_string());
  return found == names.end() ? nullptr : &found->second;
}

// True where the value goes with its tensor.
bool edit_value(Value& value, const NewNames& names) {
  const NewName* name = new_name_of(value, names);
  if (name == nullptr) {
    edit_tree(value, names);
    return false;
  }
  if (*name) value["_name"] = **name;
  return !*name;
}

}  // namespace

// docs/states.md, "States": what an `object` stands for is no tensor itself, whatever its own
// `_type`.
void edit_tree(Value& tree, const NewNames& names) {
  if (tree.is_array()) {
    // An index is a path: what is gone leaves null.
    for (Value& element : tree.elements()) {
      if (edit_value(element, names)) element = Value();
    }
    return;
  }
  Value* object = is_type(tree, "object") ? tree.find("_members") : &tree;
  if (object == nullptr || !object->is_object()) return;
  std::erase_if(object->members(),
                [&](Value::Member& member) { return edit_value(member.value, names); });
}

void forget_connections(Value& metadata, const std::vector<bool>& goes) {
  Value* const list = metadata.find("connections");
  if (list == nullptr || !list->is_array() || list->size() != goes.size()) return;
  std::size_t i = 0;
  std::erase_if(list->elements(), [&](const Value&) { return goes[i++]; });
}

}  // namespace thalia::model
