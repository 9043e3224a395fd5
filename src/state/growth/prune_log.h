// What a pruning keeps for the day on which it is undone. docs/format/growth.md, "Pruning".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "state/brain/edit.h"
#include "thalia/state/growth.h"
#include "thalia/state/value.h"

namespace thalia::state {

/// A tensor of a region's state, or a matrix of a connection.
struct TensorPlace {
  std::string region;  ///< empty of a connection
  std::string source;
  std::string target;
  std::string path;  ///< in the region's state; "weights" or "delays" of a connection

  std::string owner() const { return region.empty() ? source + "->" + target : region; }
};

/// @throws UsageError (not_found).
Tensor& tensor_in(BrainEdit& edit, const TensorPlace& place);

Value new_log(std::string_view kind, std::string_view region, std::uint64_t step);
/// Adds an object for the place to the log's tensors, and returns it for what else there is to say.
/// Valid until the next one is added.
Value& add_place(Value& log, const TensorPlace& place);
Tensor index_tensor(std::span<const std::uint64_t> indices);

// Reading. @throws UsageError (bad_argument) naming the member that is not as it was written.
TensorPlace place_of(const Value& entry);
std::vector<std::uint64_t> indices_of(const Value& entry, std::string_view member);
const Value& require_member(const Value& entry, std::string_view member, Value::Kind kind);

/// thalia::prune_synapses() as a step of an edit, which is to be given up after an error.
PruneResult prune_synapses(BrainEdit& edit, std::string_view region, const PruneOptions& options);

/// Why synapses and neurons of a brain are left alone now; empty if they are not. The task is
/// changing, as the caller or the state's `task_change` says; or it has changed within the window;
/// or the state does not say.
std::string task_change_reason(const BrainState& brain, bool is_changing, std::uint64_t window);

}  // namespace thalia::state
