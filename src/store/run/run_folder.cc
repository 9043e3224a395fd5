// RunListing reads the folder's names, the size of each file and the journal, and opens no
// checkpoint: 10,000 of them take milliseconds. Names come first and facts after, so a file may go
// in between: it is not listed then. Most of the time is the system's, which finds the file of each
// name; so threads share that.
#include "store/run/run_folder.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "io/output/save_time.h"
#include "io/output/temporary_file.h"
#include "store/run/config_text.h"
#include "store/run/fields.h"
#include "store/run/gate_meta.h"
#include "store/run/lease.h"
#include "store/run/names.h"
#include "store/run/pointer.h"
#include "store/run/sidecar.h"
#include "thalia/state/value.h"

namespace thalia::store {
namespace {

// A journal of a million saves.
constexpr std::uint64_t kMaxJournalBytes = 1ull << 30;
constexpr std::size_t kFilesAPart = 1024;

// What is no metadata is as good as none: a file of ours that somebody broke does not hide what it
// is about.
std::optional<Value> read_object(const RunFiles& files, const std::filesystem::path& path) {
  try {
    const std::optional<std::string> text = files.read_text(path);
    if (!text) return std::nullopt;
    Value value = parse_json(*text);
    if (value.is_object()) return value;
  } catch (const FormatError&) {
  }
  return std::nullopt;
}

Condition condition_of(const std::string& file, const io::EntryFacts& facts,
                       const Journal& journal) {
  const auto found = journal.checks.find(file);
  if (found == journal.checks.end() || found->second.bytes != facts.bytes ||
      found->second.modified_ns != facts.modified_ns)
    return Condition::unknown;
  return found->second.is_whole ? Condition::whole : Condition::damaged;
}

void complete(CheckpointEntry& entry, const Journal& journal) {
  const auto found = journal.saved.find(entry.file);
  if (found == journal.saved.end()) return;
  const JournalLine& line = found->second;
  // A line with another size is about a file that this one replaced.
  if (line.bytes != entry.bytes && !line.is_rewritten) return;
  entry.saved_at = line.saved_at;
  entry.metric = line.metric;
  if (line.is_rewritten) return;
  entry.base = line.base;
  entry.depth = line.depth;
  entry.read_factor = line.read_factor;
}

// Names of a phase's checkpoints sort as their steps do.
bool has_file(const RunListing& listing, const std::string& file) {
  return std::ranges::binary_search(listing.entries, file, {}, &CheckpointEntry::file);
}

// After which the run went back: something of a smaller step came later. The journal knows which,
// unless somebody led the link elsewhere.
void find_left_behind(RunListing& listing) {
  const auto number_of = [&](const CheckpointEntry& entry) -> std::uint64_t {
    const auto line = listing.journal.saved.find(entry.file);
    return line == listing.journal.saved.end() ? 0 : line->second.number;
  };
  std::vector<CheckpointEntry*> by_number;
  for (CheckpointEntry& entry : listing.entries) by_number.push_back(&entry);
  std::ranges::stable_sort(by_number, std::greater(),
                           [&](const CheckpointEntry* entry) { return number_of(*entry); });
  const auto latest = std::ranges::find(listing.entries, *listing.latest, &CheckpointEntry::file);
  const bool is_last = number_of(*latest) == number_of(*by_number.front());
  std::uint64_t smallest = latest->step;
  for (CheckpointEntry* const entry : by_number) {
    entry->left_behind = entry->step > smallest;
    if (is_last && number_of(*entry) != 0) smallest = std::min(smallest, entry->step);
  }
}

// The gate's file has the digest of what it was copied from, unless that was a delta.
bool is_source(const GateEntry& gate, const CheckpointEntry& entry, const Journal& journal) {
  if (gate.phase == entry.phase && gate.source_file == entry.file) return gate.step == entry.step;
  const auto found = journal.saved.find(entry.file);
  return gate.source_file.empty() && !gate.sha256.empty() && found != journal.saved.end() &&
         found->second.sha256 == gate.sha256;
}

}  // namespace

std::filesystem::path RunFolder::phase(std::string_view name) const {
  return path_ / config_.phase(name).name / kCheckpoints;
}

std::filesystem::path RunFolder::gates() const {
  return path_ / kGates;
}

std::filesystem::path RunFolder::pool() const {
  if (!config_.pool)
    throw UsageError(ErrorCode::not_found, "the run's configuration has no pool",
                     {.path = path_.string()});
  return path_ / config_.pool->phase / config_.pool->folder;
}

std::string RunFolder::checkpoint(std::string_view phase, std::uint64_t step) const {
  return checkpoint_name(config_.phase(phase).name, step, config_.extension);
}

RunListing RunFolder::list(std::string_view phase) const {
  RunListing listing;
  const std::optional<io::Folder> folder = files_.find_folder(this->phase(phase));
  if (!folder) return listing;
  std::vector<std::string> digests;
  for (io::FolderEntry& found : folder->entries()) {
    // Links get their names by a temporary one, too.
    if (io::temporary_process(found.name)) {
      if (found.kind != io::EntryKind::folder) listing.temporaries.push_back(std::move(found.name));
    } else if (found.kind != io::EntryKind::file) {
      continue;
    } else if (found.name.ends_with(kDigestEnding)) {
      digests.push_back(found.name.substr(0, found.name.size() - kDigestEnding.size()));
    } else if (const auto step = checkpoint_step(found.name, phase, config_.extension)) {
      CheckpointEntry entry;
      entry.phase = phase;
      entry.step = *step;
      entry.file = std::move(found.name);
      listing.entries.push_back(std::move(entry));
    }
  }
  std::vector<std::optional<io::EntryFacts>> facts(listing.entries.size());
  const std::size_t parts = (facts.size() + kFilesAPart - 1) / kFilesAPart;
  // The first job is the journal.
  parallel_for(1 + parts, parts > 1 ? 0 : 1, [&](std::size_t job) {
    if (job == 0) {
      if (const auto text = read_text(*folder, std::string(kJournal), kMaxJournalBytes))
        listing.journal = parse_journal(*text);
      return;
    }
    const std::size_t end = std::min(job * kFilesAPart, facts.size());
    for (std::size_t i = (job - 1) * kFilesAPart; i < end; ++i)
      facts[i] = folder->facts(listing.entries[i].file);
  });
  auto known = facts.begin();
  std::erase_if(listing.entries, [&](CheckpointEntry& entry) {
    const std::optional<io::EntryFacts>& found = *known++;
    if (!found) return true;
    entry.bytes = found->bytes;
    entry.saved_at = found->modified_ns / 1'000'000'000;
    complete(entry, listing.journal);
    entry.condition = condition_of(entry.file, *found, listing.journal);
    return false;
  });
  std::ranges::sort(listing.entries, {}, &CheckpointEntry::step);
  for (CheckpointEntry& entry : listing.entries)
    if (entry.is_delta() && !has_file(listing, entry.base)) entry.condition = Condition::damaged;
  std::ranges::sort(digests);
  for (CheckpointEntry& entry : listing.entries)
    entry.has_digest = std::ranges::binary_search(digests, entry.file);
  for (const std::string& name : digests) {
    // Digests of other files are not ours to judge.
    const auto step = checkpoint_step(name, phase, config_.extension);
    if (step && !std::ranges::binary_search(listing.entries, *step, {}, &CheckpointEntry::step))
      listing.lone_digests.push_back(sidecar_name(name));
  }
  protect(phase, *folder, listing);
  return listing;
}

void RunFolder::protect(std::string_view phase, const io::Folder& folder,
                        RunListing& listing) const {
  const auto find = [&](const std::optional<std::string>& file) {
    return file ? std::ranges::find(listing.entries, *file, &CheckpointEntry::file)
                : listing.entries.end();
  };
  const auto latest = find(read_pointer(folder, "latest", config_.extension));
  if (latest != listing.entries.end()) {
    listing.latest = latest->file;
    latest->protected_by.push_back("latest");
    find_left_behind(listing);
  }
  const std::optional<Best> best = this->best(phase);
  // The file that tells the metric leads; the link follows it.
  auto best_entry = find(best ? std::optional(best->file) : std::nullopt);
  if (best_entry != listing.entries.end()) best_entry->protected_by.push_back("best");
  const auto linked = find(read_pointer(folder, "best", config_.extension));
  if (linked != listing.entries.end() && linked != best_entry)
    linked->protected_by.push_back("best");
  for (const GateEntry& gate : list_gates()) {
    // A crash while it was replaced leaves it without a digest: it may still be the one before.
    const std::optional<GateMeta> meta =
        gate.sha256.empty() ? read_gate_meta(*this, gate.name) : std::nullopt;
    for (CheckpointEntry& entry : listing.entries)
      if (is_source(gate, entry, listing.journal) ||
          (meta && meta->before && is_source(*meta->before, entry, listing.journal)))
        entry.protected_by.push_back("gate " + gate.name);
  }
  protect_followed(*this, phase, listing);
}

std::optional<Best> RunFolder::best(std::string_view phase) const {
  const std::optional<Value> object = read_object(files_, this->phase(phase) / kBestMeta);
  if (!object) return std::nullopt;
  try {
    Fields fields(*object);
    Best best;
    best.file = fields.text("file").value_or("");
    best.step = fields.integer("step", 0, kMaxStep).value_or(0);
    best.metric = fields.text("metric").value_or("");
    const std::optional<double> value = fields.number("value");
    best.direction = fields.text("direction") == "max" ? Direction::max : Direction::min;
    if (best.file.empty() || !value) return std::nullopt;
    best.value = *value;
    return best;
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

std::vector<GateEntry> RunFolder::list_gates() const {
  std::vector<GateEntry> gates;
  const std::optional<io::Folder> folder = files_.find_folder(this->gates());
  if (!folder) return gates;
  const std::string ending = "." + config_.extension;
  for (const io::FolderEntry& found : folder->entries()) {
    if (found.kind != io::EntryKind::file || !found.name.ends_with(ending)) continue;
    GateEntry gate;
    gate.name = found.name.substr(0, found.name.size() - ending.size());
    if (!is_name(gate.name)) continue;
    gate.file = found.name;
    if (const auto facts = folder->facts(found.name)) gate.bytes = facts->bytes;
    try {
      gate.sha256 = read_sidecar(*folder, found.name).value_or("");
    } catch (const FormatError&) {
      // Anybody who loads the gate hears of it.
    }
    if (const std::optional<GateMeta> meta = read_gate_meta(*this, gate.name)) {
      const bool is_of_before = meta->before && gate.sha256 == meta->before->sha256;
      const GateEntry& reported = is_of_before && !gate.sha256.empty() ? *meta->before : meta->gate;
      gate.phase = reported.phase;
      gate.step = reported.step;
      gate.metric = reported.metric;
      gate.promoted_at = reported.promoted_at;
      // It describes this file, and not one that was there before.
      if (reported.sha256 == gate.sha256 || (meta->before && gate.sha256.empty()))
        gate.source_file = reported.source_file;
    }
    gates.push_back(std::move(gate));
  }
  std::ranges::sort(gates, {}, &GateEntry::name);
  return gates;
}

CheckpointEntry entry_of_step(const RunFolder& run, std::string_view phase, std::uint64_t step) {
  RunListing listing = run.list(phase);
  for (CheckpointEntry& entry : listing.entries)
    if (entry.step == step) return std::move(entry);
  throw UsageError(ErrorCode::not_found, fmt::format("no checkpoint of step {}", step),
                   {.path = run.phase(phase).string()});
}

std::uint64_t modified_ns(const io::Folder& folder, const std::string& file) {
  const std::optional<io::EntryFacts> facts = folder.facts(file);
  return facts ? facts->modified_ns : 0;
}

std::string best_text(const Best& best) {
  Value object = Value::object();
  object.add("file", best.file);
  object.add("step", best.step);
  object.add("metric", best.metric);
  object.add("value", best.value);
  object.add("direction", best.direction == Direction::max ? "max" : "min");
  return pretty_json(object);
}

std::uint64_t now_seconds() {
  return io::save_time({});
}

}  // namespace thalia::store
