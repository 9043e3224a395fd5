// The tree of Python's containers that a file's metadata may hold. docs/use/python.md, "What a tree
// looks like": a dictionary is a list of pairs, and a tensor is in it by its name.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "thalia/state/value.h"

namespace thalia::store {

/// The root NODE in a file's metadata; nullptr if it holds no tree.
Value* python_tree(Value& metadata) noexcept;
const Value* python_tree(const Value& metadata) noexcept;

/// Calls visit(key, NODE) for each key of a dictionary that is a text; not at all for other NODEs.
void for_each_key(const Value& node,
                  const std::function<void(const std::string& key, const Value& value)>& visit);
/// The NODE of a dictionary's key; nullptr if it has none, or is no dictionary.
const Value* find_key(const Value& node, std::string_view key);
/// Adds to a dictionary. Does nothing to other NODEs.
void add_key(Value& node, std::string key, Value value);
/// Takes keys out of a dictionary.
void erase_keys(Value& node, const std::function<bool(const std::string& key, Value& value)>& goes);
/// Calls visit(key, NODE) for all that a container holds. The key is null if it is no text, or
/// that of no dictionary.
void for_each_inner(Value& node,
                    const std::function<void(const std::string* key, Value& inner)>& visit);
/// The name of the tensor that a NODE stands for; nullptr for any other.
const std::string* tensor_of(const Value& node);

/// Takes out tensors that are not in `kept`, and containers that are empty then. In a list they
/// leave None, where an index is a path.
void keep_tensors(Value& node, const std::set<std::string, std::less<>>& kept);
/// New names for tensors; those that are not in `names` keep theirs.
void rename_tensors(Value& node, const std::map<std::string, std::string, std::less<>>& names);

}  // namespace thalia::store
