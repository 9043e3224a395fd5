// Connections come first: those that stay say which regions have to, as their ends. A region's
// texts are edited after its tensors, and only where something that they describe has gone.
#include "store/pool/state_part.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "state/brain/edit_tree.h"
#include "state/brain/stored_region.h"
#include "state/value/path_names.h"
#include "store/pool/training_state.h"
#include "store/run/python_tree.h"
#include "thalia/state/brain.h"

namespace thalia::store {
namespace {

std::string path_of_tensor(const RegionSpec& region, const TensorSpec& tensor) {
  return state::path_in_region(region.name, component_of_role(tensor.role), tensor.name);
}

class Parting {
 public:
  Parting(StateSource state, const PartRules& rules) : rules_(rules) {
    part_.state = std::move(state);
    part_.metadata = parse_json(part_.state.metadata_json);
  }

  StatePart run() {
    part_connections();
    std::erase_if(part_.state.regions, [&](RegionSource& region) { return !part_region(region); });
    if (Value* const tree = python_tree(part_.metadata)) {
      if (rules_.forgets_training) {
        forget_training(*tree, StateTree::file,
                        [&](const std::string& name) { return kept_names_.contains(name); });
      }
      if (!part_.gone.empty()) keep_tensors(*tree, kept_names_);
    }
    if (rules_.forgets_training) forget_members();
    return std::move(part_);
  }

 private:
  bool keeps(const state::TensorNames& names, const TensorSpec& spec) {
    const bool stays = rules_.keeps_tensor(names, spec);
    (stays ? part_.kept : part_.gone).push_back(names.shown());
    return stays;
  }

  void part_connections() {
    std::erase_if(part_.state.connections, [&](ConnectionSource& connection) {
      const auto keeps_matrix = [&](const char* matrix, const TensorSource& tensor) {
        const std::string path =
            state::path_in_connection(connection.source, connection.target, matrix);
        return keeps({.path = path, .region = {}, .name = tensor.spec.name}, tensor.spec);
      };
      const bool stays = keeps_matrix("weights", connection.weights);
      if (connection.delays && !keeps_matrix("delays", *connection.delays))
        connection.delays.reset();
      connections_gone_.push_back(!stays);
      if (!stays) return true;
      ends_.insert(connection.source);
      ends_.insert(connection.target);
      return false;
    });
  }

  // False if the region goes.
  bool part_region(RegionSource& region) {
    const bool is_end = ends_.contains(region.spec.name);
    if (region.tensors.empty()) {
      edit_texts(region.spec, {});
      return is_end || !rules_.keeps_empty || rules_.keeps_empty(region.spec.name);
    }
    state::NewNames gone;
    std::erase_if(region.tensors, [&](const TensorSource& tensor) {
      const std::string path = path_of_tensor(region.spec, tensor.spec);
      const bool stays =
          keeps({.path = path, .region = region.spec.name, .name = tensor.spec.name}, tensor.spec);
      if (stays) {
        kept_names_.insert(tensor.spec.name);
      } else {
        gone.emplace(tensor.spec.name, std::nullopt);
      }
      return !stays;
    });
    // That of a brain itself also has what is no tensor, and of no region.
    const bool has_more = region.spec.name == state::kBrainRegion && !rules_.keeps_empty;
    if (region.tensors.empty() && !is_end && !has_more) return false;
    edit_texts(region.spec, gone);
    return true;
  }

  void edit_texts(RegionSpec& region, const state::NewNames& gone) const {
    const bool tells_of_connections =
        region.name == state::kBrainRegion &&
        std::ranges::find(connections_gone_, true) != connections_gone_.end();
    const bool changes = !gone.empty() || tells_of_connections || rules_.forgets_training;
    if (region.metadata_json.empty() || !changes) return;
    Value metadata = parse_json(region.metadata_json);
    if (Value* const tree = metadata.find(state::kTreeMember)) {
      if (rules_.forgets_training) {
        forget_training(*tree, StateTree::region,
                        [&](const std::string& name) { return !gone.contains(name); });
      }
      state::edit_tree(*tree, gone);
    }
    if (tells_of_connections) state::forget_connections(metadata, connections_gone_);
    region.metadata_json = to_json(metadata);
  }

  // A key names the tensors whose region, or whose name, begins with it.
  void forget_members() {
    std::set<std::string, std::less<>> used;
    for (const std::string& name : part_.kept) {
      const std::size_t slash = name.find('/');
      for (const std::string_view path :
           {std::string_view(name), std::string_view(name).substr(slash + 1)})
        used.emplace(path.substr(0, path.find_first_of("./")));
    }
    forget_training(part_.metadata, [&](const std::string& key) { return used.contains(key); });
  }

  const PartRules& rules_;
  StatePart part_;
  std::vector<bool> connections_gone_;
  std::set<std::string> ends_;
  std::set<std::string, std::less<>> kept_names_;
};

}  // namespace

void for_each_tensor(const StateSource& state, const TensorVisitor& visit) {
  for (const RegionSource& region : state.regions) {
    for (const TensorSource& tensor : region.tensors) {
      const std::string path = path_of_tensor(region.spec, tensor.spec);
      visit({.path = path, .region = region.spec.name, .name = tensor.spec.name}, tensor.spec);
    }
  }
  for (const ConnectionSource& connection : state.connections) {
    const auto visit_matrix = [&](const char* matrix, const TensorSource& tensor) {
      const std::string path =
          state::path_in_connection(connection.source, connection.target, matrix);
      visit({.path = path, .region = {}, .name = tensor.spec.name}, tensor.spec);
    };
    visit_matrix("weights", connection.weights);
    if (connection.delays) visit_matrix("delays", *connection.delays);
  }
}

StateSource StatePart::finish() && {
  state.metadata_json = to_json(metadata);
  return std::move(state);
}

StatePart part_of(StateSource state, const PartRules& rules) {
  return Parting(std::move(state), rules).run();
}

bool fits_any(const std::vector<std::string>& patterns, const state::TensorNames& names) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& pattern) { return names.fit(pattern); });
}

void for_each_key_of(const state::TensorNames& names,
                     const std::function<void(const state::TensorNames&)>& visit) {
  visit(names);
  if (names.region.empty()) return;
  for (const std::string_view name : {names.region, names.name}) {
    const std::string_view key = name.substr(0, name.find_first_of("./"));
    for (const std::string_view part : {name, key})
      if (part != names.name) visit({.path = part, .region = {}, .name = part});
  }
}

bool fits_record(const std::vector<std::string>& patterns, const state::TensorNames& names) {
  bool fits = false;
  for_each_key_of(names, [&](const state::TensorNames& part) { fits |= fits_any(patterns, part); });
  return fits;
}

}  // namespace thalia::store
