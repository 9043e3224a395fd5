// Which tensors of a delta may lose something, and that the state of one of low rank is marked so.
#pragma once

#include <string>
#include <vector>

#include "state/delta/state_plan.h"
#include "state/low_rank/low_rank_change.h"

namespace thalia::state {

/// A tensor as patterns and roles see it. Borrows the source's names.
QuantizationTarget target_of(const KeyedTensor& source);
/// True if a pattern says that nothing may be lost of it.
bool is_excluded(const QuantizationTarget& target, const DeltaOptions& options);
/// @throws UsageError (not_found) for a pattern of the options that fits no tensor of the state.
void check_patterns(const std::vector<KeyedTensor>& sources, const DeltaOptions& options);
/// True if low rank is asked for and a tensor may be stored so, by name, role, type, rank and size.
bool may_be_low_rank(const KeyedTensor& source, const DeltaOptions& options);

/// Where some tensor may be of low rank, the metadata gets the generation of the loss, which is
/// returned.
/// `options` ask for low rank.
/// @throws UsageError as check_low_rank() and next_generation().
LossyGeneration mark_low_rank(const std::vector<KeyedTensor>& sources, const DeltaOptions& options,
                              std::string& metadata);

}  // namespace thalia::state
