// CRC-32 and content hash of borrowed payloads, in parallel over tensors and over the pieces of
// large ones.
#pragma once

#include "container/draft.h"

namespace thalia::container {

/// Fills in the digest of every tensor that is neither streamed nor digested yet by compression,
/// and checks the indices of sparse ones on the way. @throws UsageError (bad_argument) naming the
/// tensor whose indices are wrong.
void digest_borrowed_payloads(Draft& draft, unsigned threads);

}  // namespace thalia::container
