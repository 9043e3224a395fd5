#include "model/tensor_paths.h"

#include "thalia/brain_region.h"

namespace thalia::model {
namespace {

using Paths = std::unordered_map<std::string, std::string>;

bool has_text(const Value& object, std::string_view member, std::string_view text) {
  const Value* found = object.find(member);
  return found != nullptr && found->kind() == Value::Kind::string && found->as_string() == text;
}

void walk(const Value& tree, const std::string& path, Paths& paths) {
  if (tree.is_array()) {
    for (std::size_t i = 0; i < tree.size(); ++i)
      walk(tree.elements()[i], path + '[' + std::to_string(i) + ']', paths);
  }
  if (!tree.is_object()) return;
  if (has_text(tree, "_type", "tensor")) {
    const Value* name = tree.find("_name");
    if (name != nullptr && name->kind() == Value::Kind::string)
      paths.emplace(name->as_string(), path);
    return;
  }
  const Value* escaped = has_text(tree, "_type", "object") ? tree.find("_members") : nullptr;
  if (escaped != nullptr) return walk(*escaped, path, paths);
  for (const auto& [name, member] : tree.members())
    walk(member, path.empty() ? name : path + '.' + name, paths);
}

}  // namespace

std::unordered_map<std::string, std::string> paths_of_names(const Value& region_metadata) {
  Paths paths;
  const Value* tree = region_metadata.find("thalia_state");
  const Value* components = tree == nullptr ? nullptr : tree->find("components");
  if (components != nullptr) walk(*components, "", paths);
  return paths;
}

std::string path_of(const TensorView& tensor, const Paths& paths) {
  const std::string name(tensor.name());
  const auto named = paths.find(name);
  if (named != paths.end()) return named->second;
  return std::string(component_of_role(tensor.role())) + '.' + name;
}

}  // namespace thalia::model
