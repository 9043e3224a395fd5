// The order is what makes a crash harmless. A delta is rewritten while its base is there; deltas of
// it first, since they find it by an identity that the rewriting changes. A delta's name is gone,
// on the disk too, before that of its base: no crash leaves a delta without a base. Files are
// gone, on the disk too, before their digests go, and a digest without a file is swept up by the
// next writer.
#include "store/retention/prune.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "io/folder/line_log.h"
#include "store/load/checked_file.h"
#include "store/retention/rewrite.h"
#include "store/run/names.h"
#include "store/run/sidecar.h"
#include "thalia/text.h"

namespace thalia::store {
namespace {

using Fate = RetentionDecision::Fate;

// Shorter ones are not worth the work, and tell people what became of a checkpoint.
constexpr std::uint64_t kShortJournal = 1000;

// The state of a delta takes its place under its name, with what the journal knows of it.
void squash_delta(const PruneJob& job, const CheckpointEntry& entry) {
  const std::filesystem::path path = job.run.phase(job.phase) / entry.file;
  const RunFiles& files = job.run.files();
  LoadOptions load;
  load.read = files.reading(job.cancel);
  rewrite_entry(job, entry, open_chain_checked(files, path, load, MissingDigest::warn),
                std::nullopt);
}

class Pruning {
 public:
  Pruning(const PruneJob& job, const RunListing& listing,
          const std::vector<RetentionDecision>& decisions)
      : job_(job),
        listing_(listing),
        decisions_(decisions),
        folder_(job.run.files().folder(job.run.phase(job.phase))) {}

  Pruned run() {
    if (std::ranges::none_of(decisions_, is_removal)) return {};
    squash();
    remove();
    return std::move(pruned_);
  }

 private:
  static bool is_removal(const RetentionDecision& decision) {
    return decision.fate == Fate::remove;
  }
  const CheckpointEntry& entry(const RetentionDecision& decision) const {
    return listing_.entries[decision.entry];
  }

  std::vector<const CheckpointEntry*> of_fate(Fate fate) const {
    std::vector<const CheckpointEntry*> found;
    for (const RetentionDecision& decision : decisions_)
      if (decision.fate == fate) found.push_back(&entry(decision));
    // What others are based on comes last.
    std::ranges::stable_sort(found, std::greater(), &CheckpointEntry::depth);
    return found;
  }

  void squash() {
    for (const CheckpointEntry* const entry : of_fate(Fate::squash)) squash_delta(job_, *entry);
  }

  void remove() {
    const std::vector<const CheckpointEntry*> going = of_fate(Fate::remove);
    note_removals();
    std::optional<unsigned> depth;
    for (const CheckpointEntry* const entry : going) {
      if (depth && *depth != entry->depth) sync();
      depth = entry->depth;
      if (folder_.remove(entry->file)) pruned_.freed_bytes += entry->bytes;
      pruned_.removed.push_back(entry->file);
    }
    if (!going.empty()) sync();
    for (const CheckpointEntry* const entry : going) folder_.remove(sidecar_name(entry->file));
  }

  // For people who ask what became of a checkpoint; nothing depends on it.
  void note_removals() {
    std::string text;
    for (const RetentionDecision& decision : decisions_)
      if (is_removal(decision))
        text += removal_text(entry(decision).file, decision.reason, now_seconds());
    if (!text.empty()) io::append_lines(folder_, std::string(kJournal), text, Durability::none);
  }

  void sync() const {
    if (job_.durability == Durability::full) folder_.sync();
  }

  const PruneJob& job_;
  const RunListing& listing_;
  const std::vector<RetentionDecision>& decisions_;
  const io::Folder folder_;
  Pruned pruned_;
};

}  // namespace

std::vector<RetentionDecision> decide(const RunFolder& run, std::string_view phase,
                                      const RunListing& listing, const RetentionPolicy& policy) {
  const std::optional<Metric>& metric = run.config().phase(phase).metric;
  return plan_retention(
      listing.entries, policy,
      {.now = now_seconds(), .direction = metric ? metric->direction : Direction::min});
}

Pruned prune(const PruneJob& job, const RunListing& listing,
             const std::vector<RetentionDecision>& decisions) {
  Pruned pruned = Pruning(job, listing, decisions).run();
  shorten_journal(job, listing);
  return pruned;
}

namespace {

std::vector<const CheckpointEntry*> dependent_entries(const RunListing& listing,
                                                      const std::string& file) {
  std::vector<const CheckpointEntry*> dependents;
  // A delta is deeper than its base, so one pass in the order of depth finds all.
  std::vector<const CheckpointEntry*> by_depth;
  for (const CheckpointEntry& entry : listing.entries)
    if (entry.is_delta()) by_depth.push_back(&entry);
  std::ranges::stable_sort(by_depth, {}, &CheckpointEntry::depth);
  for (const CheckpointEntry* const entry : by_depth) {
    if (entry->base == file ||
        std::ranges::find(dependents, entry->base, &CheckpointEntry::file) != dependents.end())
      dependents.push_back(entry);
  }
  return dependents;
}

}  // namespace

std::vector<std::string> dependents_of(const RunListing& listing, const std::string& file) {
  std::vector<std::string> files;
  for (const CheckpointEntry* const entry : dependent_entries(listing, file))
    files.push_back(entry->file);
  return files;
}

void squash_dependents(const PruneJob& job, const RunListing& listing, const std::string& file) {
  const std::vector<const CheckpointEntry*> dependents = dependent_entries(listing, file);
  for (auto entry = dependents.rbegin(); entry != dependents.rend(); ++entry)
    squash_delta(job, **entry);
}

void shorten_journal(const PruneJob& job, const RunListing& before) {
  if (before.journal.lines < kShortJournal + 4 * before.entries.size()) return;
  const RunListing listing = job.run.list(job.phase);
  std::vector<JournalLine> lines;
  for (const CheckpointEntry& entry : listing.entries) {
    const auto line = listing.journal.saved.find(entry.file);
    if (line != listing.journal.saved.end()) lines.push_back(line->second);
  }
  std::ranges::sort(lines, {}, &JournalLine::number);
  std::string text;
  for (JournalLine& line : lines) {
    // In the order of their saves: that is all that it says.
    line.is_save = line.number != 0;
    text += journal_text(line);
    if (line.is_rewritten) text += rewriting_text(line.file, now_seconds());
  }
  for (const CheckpointEntry& entry : listing.entries) {
    const auto check = listing.journal.checks.find(entry.file);
    if (check != listing.journal.checks.end())
      text += check_text(entry.file, check->second, now_seconds());
  }
  job.run.files().write_text(job.run.phase(job.phase) / kJournal, text, job.durability);
}

}  // namespace thalia::store
