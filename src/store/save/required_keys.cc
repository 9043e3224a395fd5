#include "store/save/required_keys.h"

#include <fmt/format.h>

#include <string>

#include "thalia/error.h"

namespace thalia::store {

RecordKeys keys_of(const BrainState& brain) {
  RecordKeys keys;
  keys.add_metadata(brain.metadata);
  keys.add_metadata(brain.state);
  for (const std::string& name : brain.regions.names()) keys.add_path(name);
  return keys;
}

void add_keys(RecordKeys& keys, const StateSource& state) {
  keys.add_metadata_text(state.metadata_json);
  for (const RegionSource& region : state.regions) {
    keys.add_path(region.spec.name);
    for (const TensorSource& tensor : region.tensors) keys.add_path(tensor.spec.name);
  }
}

RecordKeys keys_of(const StateSource& state) {
  RecordKeys keys;
  add_keys(keys, state);
  return keys;
}

RecordKeys keys_of(const container::FilePlan& plan) {
  RecordKeys keys;
  keys.add_metadata_text(plan.metadata);
  for (const container::RegionPlan& region : plan.regions) keys.add_path(region.spec.name);
  for (const container::TensorPlan& tensor : plan.tensors) keys.add_path(tensor.spec.name);
  return keys;
}

void require_thalia_run(const Run& run) {
  if (run.config().is_thalia()) return;
  throw UsageError(ErrorCode::wrong_state,
                   "the run's checkpoints are no .thalia files: save bytes, or a file",
                   {.field = "extension", .value = fmt::format("'{}'", run.config().extension)});
}

}  // namespace thalia::store
