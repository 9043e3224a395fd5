// Which tensors of a delta may be stored as products of low rank, and that the state is marked so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/delta/draft.h"
#include "model/delta/low_rank_change.h"

namespace thalia::model {

/// A region's dense tensor, by its names, which are borrowed; nullopt of others.
std::optional<QuantizationTarget> low_rank_target(const DeltaSource& source);

/// Where a tensor may be stored so, the metadata gets the generation of the loss, which is
/// returned.
/// @throws UsageError as check_low_rank() and next_generation().
LossyGeneration mark_low_rank(const std::vector<DeltaSource>& sources,
                              const LowRankOptions& options, std::string& metadata);

}  // namespace thalia::model
