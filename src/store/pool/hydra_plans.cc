// The specification's transitions. The network is the same in all phases; what learns it, and what
// it learns from, is not.
#include "thalia/store/transition.h"

namespace thalia {

std::vector<TransitionPlan> hydra_transitions() {
  // Momentum of the old objective would harm under the new one; random numbers and the best metric
  // begin anew. Anybody who saves the next checkpoint says its phase and its time.
  const std::vector<std::string> resets{
      "optimizer_record", "scheduler_record", "rng_state", "metrics", "phase", "timestamp"};
  const std::vector<std::string> policy{"model_record"};
  TransitionPlan to_distillation{.from = "phase1", .to = "phase2", .gate = "bc_best"};
  to_distillation.carries = policy;
  to_distillation.resets = resets;
  to_distillation.copies = {{.from = "model_record", .to = "teacher_state_dict"}};
  to_distillation.anchor = policy;

  TransitionPlan to_league{.from = "phase2", .to = "phase3", .gate = "distill_best"};
  // What the oracle sees has to be gone before the network plays against itself.
  to_league.checks = {{.key = "feature_dropout", .value = 0}};
  to_league.carries = policy;
  to_league.resets = resets;
  to_league.resets.push_back("teacher_state_dict");
  to_league.anchor = policy;
  to_league.pool_anchors = {"distill_best", "bc_best"};
  to_league.seeds_pool = true;
  return {to_distillation, to_league};
}

}  // namespace thalia
