// A file that is written anew may have as many bytes as before, so that by its size nobody could
// tell which of the two the journal's line is of. Hence a line says that the file changes, before
// it does: from then on the line before says what the checkpoint is, and no more what the file is.
// Who finds that after a crash looks into the file.
#include "store/retention/rewrite.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "io/folder/line_log.h"
#include "state/rebase/plan.h"
#include "state/rebase/rewrite.h"
#include "store/run/lease.h"
#include "store/run/names.h"
#include "store/run/sidecar.h"

namespace thalia::store {
namespace {

namespace fs = std::filesystem;

void describe_file(const RunFolder& run, const fs::path& path, JournalLine& line) {
  const RunFiles& files = run.files();
  const Reader reader = read_over(files.open(path), files.reading());
  line.bytes = files.facts(path)->bytes;
  line.base.clear();
  line.depth = 0;
  if (const auto base = reader.delta_base()) {
    line.base = fs::path(base->path).filename().string();
    line.depth = base->depth;
  }
  line.sha256.clear();
  try {
    line.sha256 = read_sidecar(files, path).value_or("");
  } catch (const FormatError&) {
    // It says nothing.
  }
  line.read_factor.reset();
  line.modified_ns = 0;
  line.is_save = false;
}

JournalLine line_of(const CheckpointEntry& entry) {
  return {.file = entry.file,
          .step = entry.step,
          .bytes = entry.bytes,
          .saved_at = entry.saved_at,
          .metric = entry.metric,
          .is_save = false};
}

void append(const PruneJob& job, const std::string& text) {
  job.run.files().append_lines(job.run.phase(job.phase) / kJournal, text, job.durability);
}

// The old file is there, or the new one without its line.
void mend_after_failure(const PruneJob& job, const CheckpointEntry& entry) noexcept {
  try {
    mend_line(job.run, job.phase, line_of(entry), job.durability);
  } catch (const std::exception&) {
    // The next writer does it.
  }
}

}  // namespace

void mend_line(const RunFolder& run, std::string_view phase, const JournalLine& line,
               Durability durability) {
  const fs::path folder = run.phase(phase);
  JournalLine mended = line;
  describe_file(run, folder / line.file, mended);
  run.files().append_lines(folder / kJournal, journal_text(mended), durability);
}

CheckpointEntry rewrite_entry(const PruneJob& job, const CheckpointEntry& entry,
                              const ChainReader& chain, const std::optional<ChainReader>& base) {
  const fs::path path = job.run.phase(job.phase) / entry.file;
  append(job, rewriting_text(entry.file, now_seconds()));
  try {
    state::rewrite(chain, base,
                   {.sha256 = true,
                    .output = job.run.files().output(job.durability),
                    .work = {.cancel = job.cancel}},
                   job.run.config().deltas.pack);
  } catch (...) {
    mend_after_failure(job, entry);
    throw;
  }
  JournalLine line = line_of(entry);
  describe_file(job.run, path, line);
  // It was written just now, and is whole.
  line.modified_ns = modified_ns(job.run.files().folder(path.parent_path()), entry.file);
  append(job, journal_text(line));
  CheckpointEntry written = entry;
  written.bytes = line.bytes;
  written.base = line.base;
  written.depth = line.depth;
  return written;
}

namespace {

class Rebasing {
 public:
  Rebasing(const PruneJob& job, unsigned max_depth) : job_(job), listing_(job.run.list(job.phase)) {
    for (std::size_t i = 0; i < listing_.entries.size(); ++i)
      by_file_.emplace(listing_.entries[i].file, i);
    plan(max_depth);
  }

  RebaseResult run(const std::function<bool(const std::string&)>& is_needed) {
    require_no_follower_on_its_way();
    for (const state::RebaseStep& step : steps_) {
      const CheckpointEntry& entry = listing_.entries[step.file];
      if (is_needed(entry.file)) {
        throw UsageError(ErrorCode::wrong_state,
                         "a save under way makes a delta of it: it cannot become another file "
                         "before that has ended",
                         {.path = path_of(entry).string()});
      }
      state::require_rewritable(open(step.file));
    }
    for (const std::size_t base : state::first_bases(steps_))
      state::require_whole(open(base), job_.cancel);
    const std::vector<CheckpointEntry> before = listing_.entries;
    for (const state::RebaseStep& step : steps_) {
      stop_if_cancelled(job_.cancel);
      listing_.entries[step.file] =
          rewrite_entry(job_, listing_.entries[step.file], open(step.file),
                        step.base ? std::optional(open(*step.base)) : std::nullopt);
    }
    return result(before);
  }

 private:
  // The deltas that it takes next have its file as their base: as other files they would cost it a
  // full read, and again where it is slow. One that holds the newest needs no other.
  void require_no_follower_on_its_way() const {
    for (const Lease& lease : live_leases(job_.run, job_.phase, now_seconds())) {
      const std::vector<std::string> links = links_after(listing_, lease.file);
      for (const state::RebaseStep& step : steps_) {
        const CheckpointEntry& entry = listing_.entries[step.file];
        if (std::ranges::find(links, entry.file) == links.end()) continue;
        throw UsageError(
            ErrorCode::wrong_state,
            fmt::format("the follower '{}' takes it next: it cannot become another file before",
                        lease.name),
            {.path = path_of(entry).string()});
      }
    }
  }

  fs::path path_of(const CheckpointEntry& entry) const {
    return job_.run.phase(job_.phase) / entry.file;
  }
  ChainReader open(std::size_t i) const {
    return job_.run.files().open_chain(path_of(listing_.entries[i]), job_.cancel);
  }

  void plan(unsigned max_depth) {
    const std::vector<CheckpointEntry>& entries = listing_.entries;
    std::vector<std::optional<std::size_t>> bases(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!entries[i].is_delta()) continue;
      const auto base = by_file_.find(entries[i].base);
      if (base != by_file_.end() && entries[base->second].depth < entries[i].depth)
        bases[i] = base->second;
    }
    // What is damaged stays as it is, for as long as it can: so does what it is based on. But where
    // the newest is damaged, that is to be known.
    std::vector<std::size_t> order;
    for (std::size_t i = entries.size(); i-- > 0;) {
      if (entries[i].left_behind) continue;
      if (order.empty() || entries[i].condition != Condition::damaged) order.push_back(i);
    }
    steps_ = state::plan_rebase(bases, order, max_depth);
  }

  RebaseResult result(const std::vector<CheckpointEntry>& before) const {
    RebaseResult result;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (std::ranges::find(steps_, i, &state::RebaseStep::file) == steps_.end()) continue;
      const CheckpointEntry& now = listing_.entries[i];
      result.input_bytes += before[i].bytes;
      result.output_bytes += now.bytes;
      result.files.push_back({.path = path_of(now),
                              .bytes_before = before[i].bytes,
                              .bytes = now.bytes,
                              .depth_before = before[i].depth,
                              .depth = now.depth});
    }
    std::ranges::stable_sort(result.files, {}, &RebasedFile::depth);
    result.seconds = watch_.seconds();
    return result;
  }

  const Stopwatch watch_;
  const PruneJob& job_;
  RunListing listing_;
  std::map<std::string, std::size_t, std::less<>> by_file_;
  std::vector<state::RebaseStep> steps_;
};

}  // namespace

RebaseResult rebase_phase(const PruneJob& job, unsigned max_depth,
                          const std::function<bool(const std::string&)>& is_needed) {
  return Rebasing(job, max_depth).run(is_needed);
}

}  // namespace thalia::store
