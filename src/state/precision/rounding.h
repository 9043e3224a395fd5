// What conversions of element types cost, over many tensors.
#pragma once

#include <string_view>

#include "codec/float/loss.h"
#include "thalia/state/precision.h"

namespace thalia::state {

/// Adds to `rounding` what a tensor lost between two looks at it.
void add_loss(RoundingLoss& rounding, std::string_view tensor, const codec::ConversionLoss& before,
              const codec::ConversionLoss& now);

}  // namespace thalia::state
