// A crash may come between any two steps: the journal's line, latest, best. So repair() can do each
// of them again, from the files and the journal alone; and what a checkpoint is protected by is on
// the disk before retention removes anything.
#include "store/save/publish.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "io/folder/line_log.h"
#include "store/retention/rewrite.h"
#include "store/run/lease.h"
#include "store/run/names.h"
#include "store/run/pointer.h"
#include "store/run/sidecar.h"
#include "store/save/replacement.h"

namespace thalia::store {
namespace {

bool is_better(double value, double than, Direction direction) {
  return direction == Direction::min ? value < than : value > than;
}

bool is_metric(const std::optional<double>& value) {
  return value && std::isfinite(*value);
}

class Phase {
 public:
  Phase(const SaveSession& session, std::string_view name)
      : session_(session),
        config_(session.run.config().phase(name)),
        folder_(session.files().folder(session.run.phase(name))) {}

  const io::Folder& folder() const { return folder_; }

  void point(const std::string& pointer, const std::string& file) const {
    const std::string& extension = session_.run.config().extension;
    if (!write_pointer(session_.files(), folder_, pointer, extension, file,
                       session_.options.durability))
      session_.warn("the file system has no symbolic links: " + pointer + ".txt tells the " +
                    pointer + " checkpoint");
  }

  void sync() const {
    if (session_.syncs_folders()) folder_.sync();
  }

  // True if the checkpoint is the best now.
  bool compare(const JournalLine& line, const RunListing& listing) const {
    if (!config_.metric) return false;
    const std::optional<Best> best = session_.run.best(config_.name);
    if (best && best->metric == config_.metric->name &&
        best->direction == config_.metric->direction) {
      const bool is_there = best->file != line.file &&
                            std::ranges::find(listing.entries, best->file,
                                              &CheckpointEntry::file) != listing.entries.end();
      if (is_there && !(is_metric(line.metric) &&
                        is_better(*line.metric, best->value, config_.metric->direction)))
        return false;
      if (!is_there) return choose_again(listing) == line.file;
    }
    if (!is_metric(line.metric)) return false;
    set_best(line.file, line.step, *line.metric);
    return true;
  }

  // The best one is gone, or another one of its step is there: of those that are, the oldest of the
  // best. Its file; empty if there is none.
  std::string choose_again(const RunListing& listing) const {
    const CheckpointEntry* chosen = nullptr;
    for (const CheckpointEntry& entry : listing.entries)
      if (config_.metric && is_metric(entry.metric) &&
          (chosen == nullptr ||
           is_better(*entry.metric, *chosen->metric, config_.metric->direction)))
        chosen = &entry;
    if (chosen == nullptr) {
      forget_best(session_, config_.name);
      return {};
    }
    set_best(chosen->file, chosen->step, *chosen->metric);
    return chosen->file;
  }

 private:
  void set_best(const std::string& file, std::uint64_t step, double value) const {
    session_.files().write_text(
        folder_.path() / kBestMeta,
        best_text({file, step, config_.metric->name, value, config_.metric->direction}),
        session_.options.durability);
    point("best", file);
  }

  const SaveSession& session_;
  const PhaseConfig& config_;
  const io::Folder folder_;
};

}  // namespace

Published publish(const SaveSession& session, std::string_view phase, const JournalLine& saved,
                  const std::function<void()>& on_visible) {
  const Phase place(session, phase);
  JournalLine line = saved;
  line.modified_ns = modified_ns(place.folder(), line.file);
  session.step(SaveStep::journal);
  io::append_lines(place.folder(), std::string(kJournal), journal_text(line),
                   session.options.durability);
  session.step(SaveStep::latest);
  place.point("latest", line.file);
  on_visible();
  session.step(SaveStep::best);
  Published published;
  published.is_best = place.compare(line, session.run.list(phase));
  // Before anything goes, what it is protected by is on the disk.
  place.sync();
  for (CheckpointEntry& entry : session.run.list(phase).entries)
    if (entry.file == line.file) published.entry = std::move(entry);
  return published;
}

// The line first: a link alone would be led forward again by the next writer, once somebody changes
// what was left behind.
void go_on_from(const SaveSession& session, std::string_view phase, const std::string& file) {
  const RunListing listing = session.run.list(phase);
  const Phase place(session, phase);
  std::uint64_t last = 0, own = 0;
  for (const CheckpointEntry& entry : listing.entries) {
    const auto line = listing.journal.saved.find(entry.file);
    if (line == listing.journal.saved.end()) continue;
    last = std::max(last, line->second.number);
    if (entry.file == file) own = line->second.number;
  }
  if (own != last)
    io::append_lines(place.folder(), std::string(kJournal), resumed_text(file, now_seconds()),
                     session.options.durability);
  if (listing.latest == file) return;
  place.point("latest", file);
  place.sync();
}

namespace {

// The line of a checkpoint that has none: its save was cut short before it, or somebody
// brought the file.
void add_line(const SaveSession& session, const std::filesystem::path& folder,
              const CheckpointEntry& entry, bool is_newest) {
  JournalLine line{.file = entry.file,
                   .step = entry.step,
                   .bytes = entry.bytes,
                   .saved_at = entry.saved_at,
                   .is_save = is_newest};
  if (session.run.config().is_thalia()) {
    try {
      const Reader reader =
          read_over(session.files().open(folder / entry.file), session.files().reading());
      if (const auto base = reader.delta_base()) {
        line.base = std::filesystem::path(base->path).filename().string();
        line.depth = base->depth;
      }
    } catch (const Error& error) {
      // It is no checkpoint, and gets no line that would say so.
      session.warn(std::string("not readable: ") + error.what());
      return;
    }
  }
  session.files().append_lines(folder / kJournal, journal_text(line), session.options.durability);
}

// A crash came between the line that says that a file takes another form and the one of what it is.
void mend(const SaveSession& session, std::string_view phase, const JournalLine& line) {
  try {
    mend_line(session.run, phase, line, session.options.durability);
  } catch (const FormatError& error) {
    session.warn(std::string("not readable: ") + error.what());
  } catch (const IntegrityError& error) {
    session.warn(std::string("not readable: ") + error.what());
  }
}

// A crash came between a removal's line, or that of a replacement, and what it describes.
bool restore_lines(const SaveSession& session, const std::filesystem::path& folder,
                   const RunListing& listing) {
  bool has_restored = false;
  for (const CheckpointEntry& entry : listing.entries) {
    const auto gone = listing.journal.removed.find(entry.file);
    if (gone != listing.journal.removed.end())
      has_restored |= restore_line(session, folder / entry.file, gone->second);
  }
  return has_restored;
}

// The checkpoint that was saved last, and when it was written: by the journal, and of
// those that it does not know by the times of their files. These are not looked at otherwise, since
// a copy of a run has others.
struct Newest {
  const CheckpointEntry* entry = nullptr;
  std::uint64_t since_ns = 0;
};

Newest newest_of(const io::Folder& folder, const RunListing& listing) {
  Newest newest;
  const CheckpointEntry* last = nullptr;
  std::uint64_t number = 0;
  for (const CheckpointEntry& entry : listing.entries) {
    const auto line = listing.journal.saved.find(entry.file);
    // Sizes are not compared: a damaged file may still be the one that was saved last.
    if (line == listing.journal.saved.end()) continue;
    if (last == nullptr || line->second.number > number) {
      last = &entry;
      number = line->second.number;
    }
  }
  const auto time_of = [&](const std::string& name) {
    const auto facts = folder.facts(name);
    return facts ? facts->modified_ns : 0;
  };
  if (last != nullptr) newest = {last, time_of(last->file)};
  for (const CheckpointEntry& entry : listing.entries) {
    if (listing.journal.saved.contains(entry.file)) continue;
    const std::uint64_t time = time_of(entry.file);
    if (time >= newest.since_ns) newest = {&entry, time};
  }
  return newest;
}

}  // namespace

// Files of temporary names are of saves that were killed: this process holds the lock, and has not
// begun to save.
void repair(const SaveSession& session, std::string_view phase, bool may_sweep) {
  if (may_sweep) sweep_leases(session.run, phase, now_seconds());
  RunListing listing = session.run.list(phase);
  if (listing.entries.empty() && listing.temporaries.empty() && listing.lone_digests.empty())
    return;
  const Phase place(session, phase);
  const io::Folder& folder = place.folder();
  bool has_changed = false;
  if (may_sweep) {
    for (const auto* const names : {&listing.temporaries, &listing.lone_digests})
      for (const std::string& name : *names) has_changed |= folder.remove(name);
  }
  // First what was to go and did not: it is not new.
  if (restore_lines(session, folder.path(), listing)) listing = session.run.list(phase);
  const Newest newest = newest_of(folder, listing);
  const std::optional<Best> best_before = session.run.best(phase);
  bool is_best_replaced = false;
  for (const CheckpointEntry& entry : listing.entries) {
    if (const auto known = listing.journal.saved.find(entry.file);
        known != listing.journal.saved.end()) {
      if (known->second.is_rewritten) mend(session, phase, known->second);
      continue;
    }
    add_line(session, folder.path(), entry, &entry == newest.entry);
    is_best_replaced |= best_before && best_before->file == entry.file &&
                        listing.journal.removed.contains(entry.file);
  }
  if (newest.entry != nullptr && listing.latest != newest.entry->file) {
    // Somebody may have led the link to an older one on purpose: then it is younger than the save.
    const auto link = folder.facts("latest." + session.run.config().extension);
    const bool was_led_back = listing.latest && link && link->kind == io::EntryKind::link &&
                              link->modified_ns > newest.since_ns;
    if (!was_led_back) {
      place.point("latest", newest.entry->file);
      has_changed = true;
    }
  }
  if (is_best_replaced) {
    place.choose_again(session.run.list(phase));
    has_changed = true;
  }
  const std::optional<Best> best = session.run.best(phase);
  if (best && read_pointer(folder, "best", session.run.config().extension) != best->file &&
      std::ranges::find(listing.entries, best->file, &CheckpointEntry::file) !=
          listing.entries.end()) {
    place.point("best", best->file);
    has_changed = true;
  }
  if (has_changed) place.sync();
}

void choose_best(const SaveSession& session, std::string_view phase) {
  const Phase place(session, phase);
  place.choose_again(session.run.list(phase));
  place.sync();
}

void forget_best(const SaveSession& session, std::string_view phase) {
  const io::Folder folder = session.files().folder(session.run.phase(phase));
  folder.remove(std::string(kBestMeta));
  remove_pointer(folder, "best", session.run.config().extension);
  if (session.syncs_folders()) folder.sync();
}

}  // namespace thalia::store
