// A file is read once: what was found is in the journal, and holds until the file changes. What the
// disk refused is not: it may answer the next time, and until then the file counts as damaged.
#include "store/retention/condition.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "store/load/checked_file.h"
#include "store/run/names.h"

namespace thalia::store {
namespace {

using Fate = RetentionDecision::Fate;

// This file alone: what a delta is based on is an entry of its own.
void read_whole(const PruneJob& job, const std::filesystem::path& path) {
  LoadOptions options;
  options.read = job.run.files().reading(job.cancel);
  const CheckedFile file = open_checked(job.run.files(), path, options, MissingDigest::warn);
  if (!job.run.config().is_thalia()) return;
  const Reader reader = read_over(file.bytes, options.read);
  if (!file.has_digest) reader.verify_all(job.cancel);
}

struct Verdict {
  Condition condition = Condition::whole;
  bool is_lasting = true;
};

Verdict verdict_on(const PruneJob& job, const std::filesystem::path& path) {
  try {
    read_whole(job, path);
    return {};
  } catch (const CancelledError&) {
    throw;
  } catch (const Error& error) {
    if (job.on_warning) job.on_warning(std::string("damaged: ") + error.what());
    return {Condition::damaged, dynamic_cast<const IoError*>(&error) == nullptr};
  }
}

bool is_under_way(const CheckpointEntry& entry) {
  return std::ranges::find(entry.protected_by, kUnderWay) != entry.protected_by.end();
}

class Planning {
 public:
  Planning(const PlanRequest& request, std::unique_lock<io::ProcessMutex>& lock)
      : request_(request),
        lock_(lock),
        folder_(request.job.run.files().folder(request.job.run.phase(request.job.phase))) {}

  RetentionPlan run() {
    while (true) {
      RetentionPlan plan{request_.job.run.list(request_.job.phase), {}};
      if (request_.protect) request_.protect(plan.listing);
      for (CheckpointEntry& entry : plan.listing.entries) {
        const auto found = found_.find(entry.file);
        if (found != found_.end() && entry.condition == Condition::unknown)
          entry.condition = found->second;
      }
      plan.decisions = decide(request_.job.run, request_.job.phase, plan.listing, request_.policy);
      const std::vector<std::string> unknown = unknown_of(plan);
      if (unknown.empty()) return plan;
      read(unknown);
    }
  }

 private:
  // The newest first. With a delta comes what it is based on, which stays with it.
  static std::vector<std::string> unknown_of(const RetentionPlan& plan) {
    std::vector<std::string> unknown;
    const bool has_removals = std::ranges::any_of(
        plan.decisions,
        [](const RetentionDecision& decision) { return decision.fate == Fate::remove; });
    if (!has_removals) return unknown;
    for (auto decision = plan.decisions.rbegin(); decision != plan.decisions.rend(); ++decision) {
      const CheckpointEntry& entry = plan.listing.entries[decision->entry];
      const bool stays = decision->fate != Fate::remove;
      if (stays && entry.condition == Condition::unknown && !is_under_way(entry))
        unknown.push_back(entry.file);
    }
    return unknown;
  }

  void read(const std::vector<std::string>& files) {
    lock_.unlock();
    std::vector<GateFinding> findings;
    for (const std::string& file : files) {
      // Asked for before it is read: of what changes meanwhile nothing is known.
      const std::optional<io::EntryFacts> facts = folder_.facts(file);
      if (!facts) continue;
      const Verdict verdict = verdict_on(request_.job, folder_.path() / file);
      found_.insert_or_assign(file, verdict.condition);
      if (verdict.is_lasting)
        findings.push_back({file,
                            {.bytes = facts->bytes,
                             .modified_ns = facts->modified_ns,
                             .is_whole = verdict.condition == Condition::whole}});
    }
    lock_.lock();
    if (request_.notes) note_findings(request_.job.run, request_.job.phase, findings);
  }

  const PlanRequest& request_;
  std::unique_lock<io::ProcessMutex>& lock_;
  const io::Folder folder_;
  std::map<std::string, Condition> found_;
};

}  // namespace

void note_findings(const RunFolder& run, std::string_view phase,
                   const std::vector<GateFinding>& findings) {
  std::string text;
  for (const GateFinding& finding : findings)
    text += check_text(finding.file, finding.check, now_seconds());
  // Without it the file is read again.
  if (!text.empty()) run.files().append_lines(run.phase(phase) / kJournal, text, Durability::none);
}

RetentionPlan plan_whole(const PlanRequest& request, std::unique_lock<io::ProcessMutex>& lock) {
  return Planning(request, lock).run();
}

}  // namespace thalia::store
