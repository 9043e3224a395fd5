// The tree in a region's metadata that says where in the state its tensors are: names changed, and
// tensors taken out. docs/format/states.md, "States"; docs/use/python.md, "Brains", for what Python
// adds.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "thalia/state/value.h"

namespace thalia::state {

/// By the names that a region's tensors had: what the tree of the region calls them now; nullopt
/// if they go.
using NewName = std::optional<std::string>;
using NewNames = std::map<std::string, NewName, std::less<>>;

/// What is gone leaves null in arrays, where an index is a path.
void edit_tree(Value& tree, const NewNames& names);

/// The name of the tensor that a node stands for; nullptr for any other node.
const std::string* tensor_in_tree(const Value& node);
/// Calls visit(key, node) for all that a node holds. The key is null if it is no text, or that
/// of no member.
void for_each_in_tree(Value& node,
                      const std::function<void(const std::string* key, Value& inner)>& visit);
/// Takes members out of a node.
void erase_in_tree(Value& node,
                   const std::function<bool(const std::string& key, Value& inner)>& goes);

/// The metadata of the brain's own region has an entry for each of the file's connections, in their
/// order: those of connections that go are taken out. Does nothing if it has not so many.
void forget_connections(Value& metadata, const std::vector<bool>& goes);

}  // namespace thalia::state
