// A change of a matrix as a few quantized pairs of vectors. docs/format/deltas.md,
// "low_rank_delta".
#pragma once

#include <optional>
#include <vector>

#include "state/quantize/quantizer.h"
#include "thalia/state/low_rank.h"
#include "thalia/types.h"

namespace thalia::state {

/// @throws UsageError (bad_argument) naming the option and what it can be.
void check_low_rank(const LowRankOptions& options);

struct LowRankChange {
  std::vector<std::byte> payload;
  std::vector<std::byte> result;  ///< the elements that come out
  LowRankReport report;           ///< but for region and name
};

/// From `base` to `now`, both the elements of a matrix that may be changed so. nullopt if a
/// number is not finite, nothing changed, or more is lost than the options allow. Deterministic.
std::optional<LowRankChange> low_rank_change(DType dtype, const Shape& shape, ByteSpan base,
                                             ByteSpan now, const LowRankOptions& options,
                                             LossyGeneration generation, unsigned threads);

}  // namespace thalia::state
