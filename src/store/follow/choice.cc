// The newest is what the pointer names, else the file of the largest step. Files of larger steps
// than the pointer's were left behind, and are never taken. In a folder that is no run, a file's
// step is the one in its header, which is read once.
#include "store/follow/choice.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/fail.h"
#include "container/read/reader_of.h"
#include "io/output/temporary_file.h"
#include "io/system/posix_error.h"
#include "state/delta/replaced_top.h"
#include "store/load/checked_file.h"
#include "store/run/names.h"
#include "store/run/pointer.h"
#include "thalia/error.h"

namespace thalia::store {
namespace {

constexpr std::string_view kEnding = ".thalia";
constexpr std::string_view kExtension = "thalia";

std::optional<Run> run_at(const std::filesystem::path& folder, Access access) {
  const std::optional<io::Folder> found = RunFiles(folder).find_folder(folder);
  if (!found)
    throw UsageError(ErrorCode::not_found, "no folder to follow", {.path = folder.string()});
  if (!found->facts("run.toml") && !found->facts("run.json")) return std::nullopt;
  return Run::open(folder, access);
}

void add_to(std::string& fingerprint, std::string_view name, std::uint64_t bytes,
            std::uint64_t time) {
  fingerprint += fmt::format("{}\n{} {}\n", name, bytes, time);
}

}  // namespace

FollowedFolder::FollowedFolder(const std::filesystem::path& folder, const FollowOptions& options)
    : path_(folder),
      phase_(options.phase),
      chain_(options.chain),
      run_(run_at(folder, options.chain.read.input.access)),
      files_(folder, options.chain.read.input.access) {
  if (run_) {
    require_thalia(run_->config());
    if (!phase_.empty()) run_->config().phase(phase_);
    // What lies in a run may be links that a stranger has put there.
    chain_.bases.folder = folder;
  } else if (!phase_.empty()) {
    fail_argument(ErrorCode::bad_argument, "phase", fmt::format("'{}'", phase_),
                  "none, as the folder is no run");
  }
}

FollowChoices FollowedFolder::look() {
  return run_ ? look_at_run() : look_at_files();
}

std::vector<std::filesystem::path> FollowedFolder::watched() const {
  if (!run_) return {path_};
  std::vector<std::filesystem::path> folders;
  for (const PhaseConfig& phase : run_->config().phases)
    if (phase_.empty() || phase.name == phase_) folders.push_back(run_->phase_folder(phase.name));
  return folders;
}

bool FollowedFolder::may_lead(std::string_view name) {
  return name != kJournal && !name.ends_with(kDigestEnding);
}

std::optional<io::EntryFacts> FollowedFolder::facts(const FollowChoice& choice) const {
  return files_.facts(choice.path);
}

std::shared_ptr<const state::FileChain> FollowedFolder::open(
    const FollowChoice& choice, const std::shared_ptr<const state::HeldBase>& held) const {
  return with_path(choice.path.string(), [&] {
    return state::open_unreplaced(
        choice.path, [&] { return files_.open(choice.path, chain_.read.input.access); },
        [](const auto& bytes) -> const io::FileBytes& { return *bytes; },
        [&](const auto& bytes) {
          return std::make_shared<const state::FileChain>(
              container::shared_file_of(read_over(bytes, chain_.read)), chain_, held);
        });
  });
}

FollowChoices FollowedFolder::look_at_run() const {
  FollowChoices found;
  const std::optional<std::string> phase =
      phase_.empty() ? run_->current_phase() : std::optional(phase_);
  if (!phase) return found;
  const RunListing listing = RunFolder::of(*run_).list(*phase);
  found.is_led = listing.latest.has_value();
  found.fingerprint = *phase + "\n" + listing.latest.value_or("") + "\n";
  for (const CheckpointEntry& entry : loading_order(listing)) {
    add_to(found.fingerprint, entry.file, entry.bytes, entry.saved_at);
    if (entry.left_behind) continue;
    found.files.push_back({.phase = entry.phase,
                           .step = entry.step,
                           .name = entry.file,
                           .path = run_->path_of(entry)});
  }
  return found;
}

std::optional<std::uint64_t> FollowedFolder::step_of(const std::string& name,
                                                     const io::EntryFacts& facts) {
  const auto known = known_.find(name);
  if (known != known_.end() && known->second.facts == facts) return known->second.step;
  std::optional<std::uint64_t> step;
  try {
    ReadOptions read = chain_.read;
    read.verification = Verification::on_first_touch;
    step = read_over(files_.open(path_ / name, read.input.access), read).header().training_steps;
  } catch (const CancelledError&) {
    throw;
  } catch (const Error& error) {
    if (io::is_out_of_resources(error)) throw;
  }
  known_[name] = {facts, step};
  return step;
}

FollowChoices FollowedFolder::look_at_files() {
  struct Found {
    std::string name;
    io::EntryFacts facts;
    std::optional<std::uint64_t> step;
  };
  const io::Folder folder = files_.folder(path_);
  std::vector<Found> all;
  for (io::FolderEntry& entry : folder.entries()) {
    if (entry.kind != io::EntryKind::file || !entry.name.ends_with(kEnding)) continue;
    if (io::temporary_process(entry.name)) continue;
    if (const std::optional<io::EntryFacts> facts = folder.facts(entry.name))
      all.push_back({std::move(entry.name), *facts, std::nullopt});
  }
  for (Found& one : all) one.step = step_of(one.name, one.facts);
  std::erase_if(known_, [&](const auto& known) {
    return std::ranges::find(all, known.first, &Found::name) == all.end();
  });
  std::ranges::sort(all, [](const Found& a, const Found& b) {
    return std::tie(a.step, a.facts.modified_ns, a.name) >
           std::tie(b.step, b.facts.modified_ns, b.name);
  });
  const std::optional<std::string> pointer =
      read_pointer(folder, "latest", std::string(kExtension));
  FollowChoices found{.fingerprint = pointer.value_or("") + "\n"};
  const auto led = pointer ? std::ranges::find(all, *pointer, &Found::name) : all.end();
  found.is_led = led != all.end();
  if (found.is_led) {
    const Found first = *led;
    all.erase(led);
    // What is newer than the pointer says was left behind.
    if (first.step) std::erase_if(all, [&](const Found& one) { return one.step > first.step; });
    all.insert(all.begin(), first);
  }
  for (const Found& one : all) {
    add_to(found.fingerprint, one.name, one.facts.bytes, one.facts.modified_ns);
    found.files.push_back({.step = one.step.value_or(0),
                           .has_step = one.step.has_value(),
                           .name = one.name,
                           .path = path_ / one.name});
  }
  return found;
}

}  // namespace thalia::store
