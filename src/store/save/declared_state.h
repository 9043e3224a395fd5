// What a writer has declared, as a state that a delta can be taken of.
#pragma once

#include "container/plan/file_plan.h"
#include "thalia/state/delta.h"

namespace thalia::store {

/// Borrows the plan, and the bytes that it borrows. @throws UsageError (bad_argument) for a tensor
/// whose bytes are not there yet; as Writer::commit() for a plan that is not complete.
StateSource declared_state(const container::FilePlan& plan);

}  // namespace thalia::store
