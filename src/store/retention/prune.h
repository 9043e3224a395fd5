// Carries out what plan_retention() decided. docs/format/store.md, "Retention".
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "store/run/run_folder.h"
#include "thalia/store/retention.h"

namespace thalia::store {

struct PruneJob {
  const RunFolder& run;
  std::string phase;
  Durability durability = Durability::full;
  std::stop_token cancel{};
  std::function<void(const std::string&)> on_warning{};
};

/// Adds what plan_retention() needs to know beside the policy.
std::vector<RetentionDecision> decide(const RunFolder& run, std::string_view phase,
                                      const RunListing& listing, const RetentionPolicy& policy);

struct Pruned {
  std::vector<std::string> removed;
  std::uint64_t freed_bytes = 0;
};
/// Deltas that lose their base become full files first; then what goes goes, deltas before what
/// they are based on. @param decisions made of what is known of those that stay: condition.h.
/// @throws IoError, IntegrityError: what was not done yet is done by the next one.
Pruned prune(const PruneJob& job, const RunListing& listing,
             const std::vector<RetentionDecision>& decisions);

/// The files that are based on one, directly or not, in the order of their depths.
std::vector<std::string> dependents_of(const RunListing& listing, const std::string& file);
/// Before a file is replaced: what is based on it, directly or not, becomes full files. @throws as
/// prune().
void squash_dependents(const PruneJob& job, const RunListing& listing, const std::string& file);

/// Writes the journal anew with the lines of what is there, once most of its lines are of what is
/// not. @throws IoError.
void shorten_journal(const PruneJob& job, const RunListing& before);

}  // namespace thalia::store
