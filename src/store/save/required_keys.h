// The keys that a run's records have, of what is about to be saved. docs/format/store.md,
// "Records".
#pragma once

#include <string_view>

#include "container/plan/file_plan.h"
#include "store/run/record_keys.h"
#include "thalia/state/brain.h"
#include "thalia/state/delta.h"
#include "thalia/store/run.h"

namespace thalia::store {

void add_keys(RecordKeys& keys, const StateSource& state);
RecordKeys keys_of(const BrainState& brain);
RecordKeys keys_of(const StateSource& state);
RecordKeys keys_of(const container::FilePlan& plan);

/// @param keys gives the record's, and is not called for nothing. @throws UsageError
/// (bad_argument) with all that are missing.
template <typename Keys>
void require_keys(const Run& run, std::string_view phase, const Keys& keys) {
  const RunConfig& config = run.config();
  const PhaseConfig& own = config.phase(phase);
  // A record of many tensors is not looked at for nothing.
  if (config.required_keys.empty() && own.required_keys.empty()) return;
  keys().require(config, own);
}

/// @throws UsageError (wrong_state) for a run of other files.
void require_thalia_run(const Run& run);

}  // namespace thalia::store
