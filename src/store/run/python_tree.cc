// A tree may be anybody's: a NODE of another form than docs/use/python.md gives is passed over, and
// no error. Which kinds hold others is in the four tables; a new kind of container has to be in
// one of them.
#include "store/run/python_tree.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace thalia::store {
namespace {

constexpr std::string_view kDictionaries[] = {"dict", "ordered", "counter"};
constexpr std::string_view kSequences[] = {"list", "tuple", "size", "deque"};
constexpr std::string_view kSets[] = {"set", "frozenset"};
constexpr std::string_view kTensorLeaves[] = {"tensor", "array", "scalar"};

// The list that a NODE of one of these kinds holds; nullptr for any other.
template <std::size_t N>
std::vector<Value>* contents(Value& node, const std::string_view (&kinds)[N]) {
  for (const std::string_view kind : kinds) {
    Value* const list = node.find(kind);
    if (list != nullptr && list->is_array()) return &list->elements();
  }
  return nullptr;
}

bool is_pair(const Value& value) {
  return value.is_array() && value.size() == 2;
}

// The key of a pair; nullptr if it is no text.
const std::string* key_of(const Value& pair) {
  if (!is_pair(pair) || pair.elements()[0].kind() != Value::Kind::string) return nullptr;
  return &pair.elements()[0].as_string();
}

// The name of a tensor that a NODE stands for; nullptr for any other.
Value* tensor_name(Value& node) {
  for (const std::string_view kind : kTensorLeaves) {
    Value* const name = node.find(kind);
    if (name != nullptr && name->kind() == Value::Kind::string) return name;
  }
  return nullptr;
}

// True if the NODE goes with what it held.
bool goes_from_tree(Value& node, const std::set<std::string, std::less<>>& kept) {
  if (const Value* const name = tensor_name(node)) return !kept.contains(name->as_string());
  if (std::vector<Value>* const pairs = contents(node, kDictionaries)) {
    const std::size_t gone = std::erase_if(*pairs, [&](Value& pair) {
      return is_pair(pair) && goes_from_tree(pair.elements()[1], kept);
    });
    return gone != 0 && pairs->empty();
  }
  if (std::vector<Value>* const members = contents(node, kSets)) {
    const std::size_t gone =
        std::erase_if(*members, [&](Value& member) { return goes_from_tree(member, kept); });
    return gone != 0 && members->empty();
  }
  std::vector<Value>* const elements = contents(node, kSequences);
  if (elements == nullptr) return false;
  bool has_lost = false;
  for (Value& element : *elements) {
    if (!goes_from_tree(element, kept)) continue;
    element = Value();
    has_lost = true;
  }
  return has_lost && std::ranges::all_of(*elements, &Value::is_null);
}

}  // namespace

Value* python_tree(Value& metadata) noexcept {
  Value* const python = metadata.find("thalia_checkpoint");
  return python == nullptr ? nullptr : python->find("tree");
}

const Value* python_tree(const Value& metadata) noexcept {
  return python_tree(const_cast<Value&>(metadata));
}

void for_each_key(const Value& node,
                  const std::function<void(const std::string&, const Value&)>& visit) {
  const std::vector<Value>* const pairs = contents(const_cast<Value&>(node), kDictionaries);
  if (pairs == nullptr) return;
  for (const Value& pair : *pairs)
    if (const std::string* const key = key_of(pair)) visit(*key, pair.elements()[1]);
}

const Value* find_key(const Value& node, std::string_view key) {
  const Value* found = nullptr;
  for_each_key(node, [&](const std::string& name, const Value& value) {
    if (name == key) found = &value;
  });
  return found;
}

void add_key(Value& node, std::string key, Value value) {
  std::vector<Value>* const pairs = contents(node, kDictionaries);
  if (pairs == nullptr) return;
  Value pair = Value::array();
  pair.push_back(std::move(key));
  pair.push_back(std::move(value));
  pairs->push_back(std::move(pair));
}

void erase_keys(Value& node, const std::function<bool(const std::string&, Value&)>& goes) {
  std::vector<Value>* const pairs = contents(node, kDictionaries);
  if (pairs == nullptr) return;
  std::erase_if(*pairs, [&](Value& pair) {
    const std::string* const key = key_of(pair);
    return key != nullptr && goes(*key, pair.elements()[1]);
  });
}

void for_each_inner(Value& node, const std::function<void(const std::string*, Value&)>& visit) {
  if (std::vector<Value>* const pairs = contents(node, kDictionaries)) {
    for (Value& pair : *pairs)
      if (is_pair(pair)) visit(key_of(pair), pair.elements()[1]);
    return;
  }
  std::vector<Value>* elements = contents(node, kSequences);
  if (elements == nullptr) elements = contents(node, kSets);
  if (elements == nullptr) return;
  for (Value& element : *elements) visit(nullptr, element);
}

const std::string* tensor_of(const Value& node) {
  const Value* const name = tensor_name(const_cast<Value&>(node));
  return name == nullptr ? nullptr : &name->as_string();
}

void keep_tensors(Value& node, const std::set<std::string, std::less<>>& kept) {
  if (goes_from_tree(node, kept)) node = Value();
}

void rename_tensors(Value& node, const std::map<std::string, std::string, std::less<>>& names) {
  if (Value* const name = tensor_name(node)) {
    const auto found = names.find(name->as_string());
    if (found != names.end()) *name = found->second;
    return;
  }
  if (std::vector<Value>* const pairs = contents(node, kDictionaries)) {
    for (Value& pair : *pairs)
      if (is_pair(pair)) rename_tensors(pair.elements()[1], names);
    return;
  }
  std::vector<Value>* elements = contents(node, kSequences);
  if (elements == nullptr) elements = contents(node, kSets);
  if (elements == nullptr) return;
  for (Value& element : *elements) rename_tensors(element, names);
}

}  // namespace thalia::store
