// Older, smaller states loaded into larger ones.
//
//   thalia::BrainState grown = build_brain(larger_config);
//   thalia::load_into(grown, thalia::BrainCheckpoint::load("smaller.thalia"));
//
// docs/format/growth.md, "Growth".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thalia/state/brain.h"
#include "thalia/state/growth.h"

namespace thalia {

/// What to do with what is larger in the older state than in the target.
enum class OnLarger { refuse, grow };

struct LoadIntoOptions {
  OnLarger on_larger = OnLarger::refuse;
  GrowthOptions growth{};  ///< how the target grows: initialisation, scale, seed
};

struct LoadIntoResult {
  std::uint64_t tensors_whole = 0;         ///< of the same shape in both
  std::uint64_t tensors_in_corner = 0;     ///< smaller than the target's: the rest is as it was
  std::uint64_t elements_copied = 0;       ///< of both kinds, zeros of sparse ones included
  std::uint64_t elements_kept = 0;         ///< of these tensors in the target: its own
  std::uint64_t values_copied = 0;         ///< numbers, texts and others that are no tensors
  std::vector<std::string> regions_grown;  ///< with OnLarger::grow
  // Paths from the root of the state, as "regions.cortex.weights.w_ff".
  std::vector<std::string> left_out;  ///< of the older state, without a counterpart
  std::vector<std::string> kept;      ///< tensors of the target without a counterpart
};

/// Loads an older state into a target that was built in its larger shapes. Each tensor fills the
/// corner of the target's of the same path and element type, and what lies outside keeps the
/// target's own; the target's encoding stays. Values that are no tensors are taken over, but for
/// those of a component `config`, which describes the target; so are the training steps and the
/// metadata. Arrays are taken over element by element where both have as many, else whole. A
/// region that has more neurons than in the older state gets an event of type growth. After an
/// error nothing has changed; else references to regions and connections of the target end.
/// @throws UsageError (shape_mismatch) for a tensor of another rank, or one that is larger in the
/// older state where that is to be refused; (dtype_mismatch); (wrong_state) for a target region
/// without neurons whose counterpart has some.
LoadIntoResult load_into(BrainState& target, const BrainState& older,
                         const LoadIntoOptions& options = {});

}  // namespace thalia
