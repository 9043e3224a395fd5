#include "state/brain/edit_tree.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace thalia::state {
namespace {

bool is_type(const Value& value, std::string_view type) {
  const Value* found = value.find("_type");
  return found != nullptr && found->kind() == Value::Kind::string && found->as_string() == type;
}

bool is_kind(const Value& value, std::initializer_list<std::string_view> kinds) {
  const Value* found = value.find("_kind");
  return found != nullptr && found->kind() == Value::Kind::string &&
         std::ranges::find(kinds, found->as_string()) != kinds.end();
}

bool is_pair(const Value& value) {
  return value.is_array() && value.size() == 2;
}

// What a node holds by keys, as members or as pairs; both null if it holds nothing by keys.
// docs/format/states.md: what an `object` stands for is no tensor itself, whatever its own `_type`.
struct Keyed {
  std::vector<Value::Member>* members = nullptr;
  std::vector<Value>* pairs = nullptr;
};
Keyed keyed(Value& node) {
  Value* object = &node;
  if (is_type(node, "object")) {
    object = node.find("_members");
  } else if (is_type(node, "python")) {
    Value* const value = node.find("_value");
    if (value == nullptr) return {};
    if (value->is_array() && is_kind(node, {"dict", "ordered", "counter"}))
      return {.pairs = &value->elements()};
    if (!is_kind(node, {"dataclass"})) return {};
    object = is_type(*value, "object") ? value->find("_members") : value;
  }
  if (object == nullptr || !object->is_object()) return {};
  return {.members = &object->members()};
}

// What a node holds one after the other.
std::vector<Value>* listed(Value& node) {
  if (node.is_array()) return &node.elements();
  Value* const value = is_type(node, "python") ? node.find("_value") : nullptr;
  return value != nullptr && value->is_array() && keyed(node).pairs == nullptr ? &value->elements()
                                                                               : nullptr;
}

// The node that Python marks as of one kind or another, as an array of numpy is.
Value* marked(Value& node) {
  Value* const value = is_type(node, "python") ? node.find("_value") : nullptr;
  return value != nullptr && tensor_in_tree(*value) != nullptr ? value : nullptr;
}

// True if the value goes with its tensor.
bool edit_value(Value& value, const NewNames& names) {
  Value* const mark = marked(value);
  Value& node = mark == nullptr ? value : *mark;
  const std::string* const tensor = tensor_in_tree(node);
  if (tensor == nullptr) {
    edit_tree(value, names);
    return false;
  }
  const auto found = names.find(*tensor);
  if (found == names.end()) return false;
  if (found->second) node["_name"] = *found->second;
  return !found->second;
}

}  // namespace

const std::string* tensor_in_tree(const Value& node) {
  if (!is_type(node, "tensor") && !is_type(node, "scalar")) return nullptr;
  const Value* name = node.find("_name");
  return name == nullptr || name->kind() != Value::Kind::string ? nullptr : &name->as_string();
}

void for_each_in_tree(Value& node, const std::function<void(const std::string*, Value&)>& visit) {
  if (Value* const inner = marked(node)) {
    visit(nullptr, *inner);
  } else if (std::vector<Value>* const elements = listed(node)) {
    for (Value& element : *elements) visit(nullptr, element);
  } else if (const Keyed inside = keyed(node); inside.pairs != nullptr) {
    for (Value& pair : *inside.pairs) {
      if (!is_pair(pair)) continue;
      const Value& key = pair.elements()[0];
      visit(key.kind() == Value::Kind::string ? &key.as_string() : nullptr, pair.elements()[1]);
    }
  } else if (inside.members != nullptr) {
    for (Value::Member& member : *inside.members) visit(&member.name, member.value);
  }
}

void erase_in_tree(Value& node, const std::function<bool(const std::string&, Value&)>& goes) {
  const Keyed inside = keyed(node);
  if (inside.members != nullptr) {
    std::erase_if(*inside.members,
                  [&](Value::Member& member) { return goes(member.name, member.value); });
  }
  if (inside.pairs == nullptr) return;
  std::erase_if(*inside.pairs, [&](Value& pair) {
    return is_pair(pair) && pair.elements()[0].kind() == Value::Kind::string &&
           goes(pair.elements()[0].as_string(), pair.elements()[1]);
  });
}

void edit_tree(Value& tree, const NewNames& names) {
  if (std::vector<Value>* const elements = listed(tree)) {
    // An index is a path: what is gone leaves null.
    for (Value& element : *elements) {
      if (edit_value(element, names)) element = Value();
    }
    return;
  }
  const Keyed inside = keyed(tree);
  if (inside.members != nullptr) {
    std::erase_if(*inside.members,
                  [&](Value::Member& member) { return edit_value(member.value, names); });
  }
  if (inside.pairs == nullptr) return;
  std::erase_if(*inside.pairs, [&](Value& pair) {
    return is_pair(pair) && edit_value(pair.elements()[1], names);
  });
}

void forget_connections(Value& metadata, const std::vector<bool>& goes) {
  Value* const list = metadata.find("connections");
  if (list == nullptr || !list->is_array() || list->size() != goes.size()) return;
  std::size_t i = 0;
  std::erase_if(list->elements(), [&](const Value&) { return goes[i++]; });
}

}  // namespace thalia::state
