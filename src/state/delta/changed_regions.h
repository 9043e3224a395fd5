// Which regions of a state are not as its base has them, for a report.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "container/plan/file_plan.h"
#include "state/delta/base_state.h"
#include "thalia/state/delta.h"

namespace thalia::state {

/// Fills in changed_regions and removed_regions. @param changed tensors of the plan that are not
/// the base's.
void note_changed_regions(const container::FilePlan& plan, const BaseNames& base,
                          const std::unordered_set<std::uint32_t>& changed, DeltaResult& result);

}  // namespace thalia::state
