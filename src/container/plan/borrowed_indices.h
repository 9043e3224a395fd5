// Checks the index arrays of sparse tensors before they are written.
#pragma once

#include "container/plan/file_plan.h"

namespace thalia::container {

/// Checks borrowed csr and coo payloads for what readers would refuse. @throws UsageError
/// (bad_argument) naming the tensor whose indices are wrong.
void check_borrowed_indices(const FilePlan& plan, unsigned threads);

}  // namespace thalia::container
