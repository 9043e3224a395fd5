// From one phase to the next by a declared plan: what carries over, what begins anew.
//
//   thalia::RunWriter run("runs/20260115_143022_a1b2c3d4");
//   const thalia::TransitionPlan plan = thalia::hydra_transitions().front();
//   thalia::TransitionResult begun = thalia::transition(run, plan, {.master_seed = seed});
//   thalia::Reader start = thalia::Reader::open(begun.start);
//
// docs/format/store.md, "Transitions".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thalia/store/run.h"
#include "thalia/store/writer.h"

namespace thalia {

/// A member of the gate's metadata that has to have a value: "feature_dropout" 0.
struct TransitionCheck {
  std::string key;  ///< a path through objects, with dots
  double value = 0;
  friend bool operator==(const TransitionCheck&, const TransitionCheck&) = default;
};

/// Tensors that begin the next phase as a copy of others: the teacher as the student.
struct TransitionCopy {
  std::string from;  ///< what the names of regions or tensors begin with: "model_record"
  std::string to;
  friend bool operator==(const TransitionCopy&, const TransitionCopy&) = default;
};

struct TransitionPlan {
  std::string from;  ///< names of phases
  std::string to;
  std::string gate;  ///< that is loaded; there is nothing to fall back to
  std::vector<TransitionCheck> checks{};
  /// Patterns of what is carried over; empty: all but what is reset.
  std::vector<std::string> carries{};
  /// What begins anew: these patterns fit tensors, and members of the metadata by their names. The
  /// caller makes them afresh.
  std::vector<std::string> resets{};
  std::vector<TransitionCopy> copies{};
  /// Patterns of the policy that is kept frozen next to the start, as kl_anchor.EXT; empty: none.
  std::vector<std::string> anchor{};
  std::vector<std::string> pool_anchors{};  ///< gates that begin the pool of the next phase
  bool seeds_pool = false;                  ///< ratings of the pool's members begin anew

  friend bool operator==(const TransitionPlan&, const TransitionPlan&) = default;
};

/// The specification's 1→2 and 2→3, for runs of hydra_config().
std::vector<TransitionPlan> hydra_transitions();

struct TransitionOptions {
  std::uint64_t master_seed = 0;
  /// The tensors of the model, which have to be those that are carried, all of them and no others.
  /// Empty: not checked.
  std::vector<ExpectedTensor> model{};
  bool force = false;  ///< also where the phase has begun
};

struct TransitionStep {
  std::string
      name;  ///< "load", "check", "carry", "reset", "copy", "anchor", "pool", "seed", "best"
  std::string what;  ///< a sentence
};

struct TransitionResult {
  std::vector<TransitionStep> steps;
  std::filesystem::path start;                    ///< what the next phase begins with: start.EXT
  std::optional<std::filesystem::path> anchor{};  ///< kl_anchor.EXT
  std::vector<std::string> carried;               ///< REGION/NAME of tensors
  std::vector<std::string> reset;                 ///< tensors, and members of the metadata
  /// For the phase's random numbers: the first eight bytes, little-endian, of
  /// SHA-256("phase" ‖ master_seed u64 ‖ name of the phase).
  std::uint64_t seed = 0;
};

/// Writes phase/start.EXT, phase/kl_anchor.EXT and phase/transition.json, in this order, each with
/// its digest; forgets the phase's best. Nothing is written unless all checks hold. Runs of .thalia
/// files. @throws as Run::load_gate(), check_strictly(); UsageError (wrong_state) where a check
/// does not hold, (exists) where the phase has begun, (not_found) for a phase, gate or pattern.
TransitionResult transition(RunWriter& run, const TransitionPlan& plan,
                            const TransitionOptions& options = {});

}  // namespace thalia
