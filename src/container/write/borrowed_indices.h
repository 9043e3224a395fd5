// The index arrays of sparse tensors, looked at before they are written.
#pragma once

#include "container/write/draft.h"

namespace thalia::container {

/// Checks what readers would refuse in borrowed csr and coo payloads. @throws UsageError
/// (bad_argument) naming the tensor whose indices are wrong.
void check_borrowed_indices(const Draft& draft, unsigned threads);

}  // namespace thalia::container
