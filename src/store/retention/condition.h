// Which of a phase's checkpoints are whole: what is to stay is looked at before anything goes.
// docs/format/store.md, "Retention".
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "io/system/process.h"
#include "store/retention/prune.h"

namespace thalia::store {

/// What was found of a file that was read.
struct GateFinding {
  std::string file;
  JournalCheck check;
};
/// Into the journal. @throws IoError.
void note_findings(const RunFolder& run, std::string_view phase,
                   const std::vector<GateFinding>& findings);

/// A plan, and what it was made of.
struct RetentionPlan {
  RunListing listing;
  std::vector<RetentionDecision> decisions;
};

struct PlanRequest {
  const PruneJob& job;
  const RetentionPolicy& policy;
  /// Says what is protected beside what the listing knows of. Called under the lock.
  std::function<void(RunListing&)> protect{};
  bool notes = true;  ///< what was found goes into the journal
};

/// Plans, and reads those of what is to stay whose condition is not known; what is found to be
/// damaged changes the plan. If nothing is to go, nothing is read, and what a save under way
/// holds is left alone. @param lock held on entry and on return, and not while a file is read,
/// which takes long. @throws IoError; CancelledError.
RetentionPlan plan_whole(const PlanRequest& request, std::unique_lock<io::ProcessMutex>& lock);

/// Why an entry is protected that a save under way makes or needs.
inline constexpr std::string_view kUnderWay = "a save under way";

}  // namespace thalia::store
