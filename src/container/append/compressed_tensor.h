// A borrowed payload in chunks that are held in memory: what an append adds is small.
// docs/format/format.md, "Chunks".
#pragma once

#include <cstddef>
#include <vector>

#include "container/draft/draft.h"
#include "thalia/append.h"

namespace thalia::container {

/// Compresses a tensor that is digested and lies in its pieces: afterwards they are its chunks.
/// Nothing changes where no chunk shrinks. @return the chunks' bytes, which the pieces borrow.
/// @throws CancelledError.
std::vector<std::vector<std::byte>> compress_tensor(DraftTensor& tensor,
                                                    const AppendOptions& options);

}  // namespace thalia::container
