// Keys are judged where a record has them: at the root of a tree, and in what a record is known to
// be kept in. A network may have parts of any name, so elsewhere a key alone says nothing: there it
// is of training where tensors under it are, by their roles, and no other tensor is.
#include "store/pool/training_state.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "state/brain/edit_tree.h"
#include "state/brain/stored_region.h"
#include "store/run/python_tree.h"
#include "thalia/types.h"

namespace thalia::store {
namespace {

using Visit = std::function<void(const std::string* key, Value& inner)>;

// As frameworks and their users name them: "optimizer_record", "optimizer_states", "lr_schedulers",
// "rng_state". Whole words alone.
bool is_of_training(std::string_view key) {
  constexpr std::string_view kWords[] = {"optimizer",  "optimizers", "optim", "optims", "scheduler",
                                         "schedulers", "sched",      "rng",   "rngs"};
  if (key == "opt" || key.starts_with("opt_state")) return true;
  while (!key.empty()) {
    const std::size_t end = std::min(key.find_first_of("_.-/ "), key.size());
    std::string word(key.substr(0, end));
    for (char& c : word)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (std::ranges::find(kWords, word) != std::end(kWords)) return true;
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  return false;
}

// What scales gradients is of training, but a network may scale what it is given: where a tensor
// lies under this name, it is the network's.
bool is_scaler(std::string_view key) {
  return key == "scaler" || key == "grad_scaler" || key == "amp_scaler";
}

// What a record is kept in, as the `extra` of AsyncCheckpointer.
bool holds_record(std::string_view key) {
  constexpr std::string_view kNames[] = {"checkpoint", "extra",       "record",        "state",
                                         "trainer",    "train_state", "training_state"};
  return std::ranges::find(kNames, key) != std::end(kNames);
}

const std::string* tensor_at(const Value& node, StateTree kind) {
  return kind == StateTree::file ? tensor_of(node) : state::tensor_in_tree(node);
}

void for_each_at(Value& node, StateTree kind, const Visit& visit) {
  kind == StateTree::file ? for_each_inner(node, visit) : state::for_each_in_tree(node, visit);
}

void erase_at(Value& node, StateTree kind,
              const std::function<bool(const std::string& key, Value& value)>& goes) {
  kind == StateTree::file ? erase_keys(node, goes) : state::erase_in_tree(node, goes);
}

void for_each_tensor_at(Value& node, StateTree kind,
                        const std::function<void(const std::string& name)>& visit) {
  if (const std::string* const name = tensor_at(node, kind)) return visit(*name);
  for_each_at(node, kind,
              [&](const std::string*, Value& inner) { for_each_tensor_at(inner, kind, visit); });
}

// Visits the tensors under keys of training, of a record and of those that it holds.
void for_each_training_tensor(Value& record, StateTree kind,
                              const std::function<void(const std::string& name)>& visit) {
  for_each_at(record, kind, [&](const std::string* key, Value& inner) {
    if (key == nullptr) return;
    if (is_of_training(*key))
      for_each_tensor_at(inner, kind, visit);
    else if (holds_record(*key))
      for_each_training_tensor(inner, kind, visit);
  });
}

void forget(Value& node, StateTree kind, bool is_record,
            const std::function<bool(const std::string&)>& stays) {
  erase_at(node, kind, [&](const std::string& key, Value& inner) {
    if (!is_of_training(key) && !is_scaler(key)) return false;
    std::size_t staying = 0, going = 0;
    for_each_tensor_at(inner, kind,
                       [&](const std::string& name) { ++(stays(name) ? staying : going); });
    return staying == 0 && (is_record || going > 0);
  });
  for_each_at(node, kind, [&](const std::string* key, Value& inner) {
    forget(inner, kind, is_record && key != nullptr && holds_record(*key), stays);
  });
}

// The root of what a tree of a region holds.
Value* components_of(Value& tree) {
  return tree.find("components");
}

}  // namespace

TrainingTensors::TrainingTensors(const StateSource& state) {
  Value metadata = parse_json(state.metadata_json);
  if (Value* const tree = python_tree(metadata)) {
    for_each_training_tensor(*tree, StateTree::file,
                             [&](const std::string& name) { in_trees_.insert(name); });
  }
  for (const RegionSource& region : state.regions) {
    if (region.spec.metadata_json.empty()) continue;
    Value own = parse_json(region.spec.metadata_json);
    Value* const tree = own.find(state::kTreeMember);
    Value* const components = tree == nullptr ? nullptr : components_of(*tree);
    if (components == nullptr) continue;
    for_each_training_tensor(*components, StateTree::region, [&](const std::string& name) {
      in_trees_.insert(region.spec.name + "/" + name);
    });
  }
}

bool TrainingTensors::has(const state::TensorNames& names, const TensorSpec& spec) const {
  const Role role = likely_role(spec.role, spec.name, spec.shape.rank());
  if (role == Role::optimizer || role == Role::learning_state) return true;
  for (const std::string_view name : {names.region, names.name})
    if (is_of_training(name.substr(0, name.find_first_of("./")))) return true;
  return in_trees_.contains(names.name) ||
         in_trees_.contains(std::string(names.region) + "/" + std::string(names.name));
}

void forget_training(Value& tree, StateTree kind,
                     const std::function<bool(const std::string&)>& stays) {
  Value* const root = kind == StateTree::file ? &tree : components_of(tree);
  if (root != nullptr) forget(*root, kind, true, stays);
}

void forget_training(Value& metadata, const std::function<bool(const std::string&)>& stays) {
  if (!metadata.is_object()) return;
  std::vector<std::string> gone;
  for (const Value::Member& member : metadata.members()) {
    if ((is_of_training(member.name) || is_scaler(member.name)) && !stays(member.name))
      gone.push_back(member.name);
  }
  for (const std::string& name : gone) metadata.erase(name);
}

}  // namespace thalia::store
