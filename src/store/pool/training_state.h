// What of a state only training needs: optimizers, schedules, random numbers, and what scales
// gradients. docs/format/store.md, "Pool".
#pragma once

#include <functional>
#include <set>
#include <string>

#include "state/precision/glob.h"
#include "thalia/state/delta.h"
#include "thalia/state/value.h"

namespace thalia::store {

/// The tensors of a state that only training needs.
class TrainingTensors {
 public:
  /// @throws FormatError for metadata that is no JSON.
  explicit TrainingTensors(const StateSource& state);

  /// True of what an optimizer or a schedule keeps, of a learning state, and of random numbers: by
  /// the tensor's role and name, by the key of the record that it belongs to, and by the keys under
  /// which it lies in a tree.
  bool has(const state::TensorNames& names, const TensorSpec& spec) const;

 private:
  std::set<std::string, std::less<>> in_trees_;  ///< REGION/NAME, or NAME in that of the file
};

/// The tree of a region, of states (docs/format/states.md), or the file's of Python's containers.
enum class StateTree { region, file };

/// Takes out of a tree the keys of training under which no tensor stays, before the tensors that go
/// are taken out. `stays` is asked by the name in the tree.
void forget_training(Value& tree, StateTree kind,
                     const std::function<bool(const std::string&)>& stays);
/// The same of the members of a file's metadata. `stays` is asked by key: whether a tensor that the
/// key names does.
void forget_training(Value& metadata, const std::function<bool(const std::string&)>& stays);

}  // namespace thalia::store
