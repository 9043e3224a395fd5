// Checks the index arrays of sparse tensors before they are written.
#pragma once

#include "container/draft/draft.h"

namespace thalia::container {

/// Checks borrowed csr and coo payloads for what readers would refuse. @throws UsageError
/// (bad_argument) naming the tensor whose indices are wrong.
void check_borrowed_indices(const Draft& draft, unsigned threads);

}  // namespace thalia::container
