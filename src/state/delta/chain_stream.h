// The tensors of a chain as a stream: docs/contribute/design.md, "Streaming".
#pragma once

#include <vector>

#include "thalia/state/delta.h"

namespace thalia::state {

/// @param tensors of the chain's reader, in the order in which they are handed out. @throws as
/// ChainReader::stream().
StreamReader stream_chain(const ChainReader& chain, const std::vector<TensorView>& tensors,
                          const StreamOptions& options);

}  // namespace thalia::state
