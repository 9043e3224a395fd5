// What the next phase begins with, made of a gate's state by a plan. docs/format/store.md,
// "Transitions".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "store/pool/state_part.h"
#include "thalia/store/transition.h"

namespace thalia::store {

/// @throws UsageError (wrong_state) for a check that does not hold, naming the value.
void check_gate(const TransitionPlan& plan, const Value& metadata);

struct NextState {
  StatePart start;
  std::vector<std::string> reset;   ///< tensors, empty regions, and members of the metadata
  std::vector<std::string> copied;  ///< REGION/NAME, as the copies are called
};
/// @throws UsageError (not_found) for a pattern or a copy that fits nothing, (duplicate) for a copy
/// that is there.
NextState next_state(const TransitionPlan& plan, const ChainReader& gate);

/// The tensors that are carried, copies not counted, against the model. @throws as
/// check_strictly().
void check_model(const NextState& next, std::span<const ExpectedTensor> model,
                 const std::filesystem::path& gate);

/// The policy that is kept frozen. @throws UsageError (not_found).
StatePart anchor_state(const TransitionPlan& plan, const ChainReader& gate);

}  // namespace thalia::store
