// JSON checkpoints as they are.
#pragma once

#include <string_view>

#include "formats/loom/document.h"

namespace thalia::formats::loom {

/// With weights: native or f32, as the file has them. Layers lie in the grid. `unknown`: keys that
/// were passed over. @throws FormatError.
LoomNetwork parse_checkpoint(std::string_view json, const ReadLimits& limits,
                             std::vector<std::string>& unknown);

/// Takes the weights out of a network that parse_checkpoint() gave: `out` gets them as blobs in the
/// order of their paths.
void take_weights(LoomNetwork& network, std::vector<BlobRecord>& blobs,
                  std::vector<StoredBytes>& bytes);

}  // namespace thalia::formats::loom
