// A checkpoint is listed, chosen and pruned under mutex_; files are written without it, so saves of
// several threads overlap. Two of one step meet at the rename, which refuses the second.
//
// Saves in the background are published by one thread in the order in which they were begun. It is
// started with the first of them. docs/format/store.md, "Saving in the background".
#include "store/save/impl.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "container/write/file_digest.h"
#include "container/write/file_save.h"
#include "io/folder/folder.h"
#include "io/output/atomic_file.h"
#include "io/output/temporary_file.h"
#include "store/retention/condition.h"
#include "store/retention/prune.h"
#include "store/retention/rewrite.h"
#include "store/run/names.h"
#include "store/run/sidecar.h"
#include "store/save/repair_gates.h"
#include "thalia/files.h"
#include "thalia/text.h"

namespace thalia {

std::shared_ptr<const void> store::HeldFiles::hold(std::string file, std::string base) {
  {
    const std::lock_guard lock(mutex_);
    files_.insert(file);
    if (!base.empty()) {
      files_.insert(base);
      bases_.insert(base);
    }
  }
  // Anybody who lets go may outlive the writer.
  return {static_cast<const void*>(this),
          [self = shared_from_this(), file = std::move(file), base = std::move(base)](const void*) {
            const std::lock_guard lock(self->mutex_);
            self->files_.erase(self->files_.find(file));
            if (base.empty()) return;
            self->files_.erase(self->files_.find(base));
            self->bases_.erase(self->bases_.find(base));
          }};
}

bool store::HeldFiles::is_base(const std::string& file) const {
  const std::lock_guard lock(mutex_);
  return bases_.contains(file);
}

std::vector<std::string> store::HeldFiles::all() const {
  const std::lock_guard lock(mutex_);
  return {files_.begin(), files_.end()};
}

store::SavedFile store::saved_file(const SaveResult& saved) {
  return {.bytes = saved.file_bytes,
          .sha256 = saved.sha256 ? hex(saved.sha256->bytes) : std::string(),
          .seconds = saved.seconds,
          .sync_seconds = saved.sync_seconds};
}

store::SavedFile store::saved_delta(const DeltaResult& saved) {
  SavedFile file = saved_file(saved);
  file.is_delta = true;
  return file;
}

namespace {

// How long a phase whose delta was too dear is not tried again.
constexpr unsigned kFullSavesAfterDearDelta = 8;

}  // namespace

RunWriter::Impl::Impl(const std::filesystem::path& folder, RunWriterOptions options)
    : options_(std::move(options)),
      run_(Run::open(folder, options_.access)),
      folder_lock_(folder, options_.wait, options_.cancel) {
  // Another process may have changed it while this one waited.
  run_ = options_.config
             ? store::change_config(folder, *options_.config, options_.durability, options_.access)
             : Run::open(folder, options_.access);
  const store::SaveSession own = session();
  if (folder_lock_.missing())
    own.warn(*folder_lock_.missing() + ": keep other processes from saving into the run");
  const bool is_full = options_.durability == Durability::full;
  const store::RunFiles& files = this->folder().files();
  if (is_full) io::sync_name(run_.folder());
  for (const PhaseConfig& phase : run_.config().phases) {
    const std::filesystem::path checkpoints = run_.phase_folder(phase.name);
    files.make_folders(checkpoints, options_.durability);
    // Another process may have made them, and have been killed before it synced them.
    if (is_full) {
      files.sync_name(folder_of(checkpoints));
      files.sync_name(checkpoints);
    }
    store::repair(own, phase.name, is_alone());
  }
  if (is_alone()) {
    store::repair_gates(own);
    sweep();
  }
}

// What only holders of the lock write, outside of the folders of checkpoints and gates: a pool's
// own folder is the pool's to sweep.
void RunWriter::Impl::sweep() const {
  const std::string& extension = run_.config().extension;
  const std::string beginnings[] = {".start." + extension, ".kl_anchor." + extension,
                                    ".transition.json"};
  for (const PhaseConfig& phase : run_.config().phases) {
    const io::Folder beginning_of = folder().files().folder(run_.folder() / phase.name);
    for (const io::FolderEntry& found : beginning_of.entries())
      if (io::temporary_process(found.name) &&
          std::ranges::any_of(beginnings, [&](const std::string& beginning) {
            return found.name.starts_with(beginning);
          }))
        beginning_of.remove(found.name);
  }
}

RunWriter::Impl::~Impl() {
  {
    const std::lock_guard lock(queue_mutex_);
    closing_ = true;
  }
  queue_changed_.notify_all();
  if (publisher_.joinable()) publisher_.join();
}

store::SavePlace RunWriter::Impl::place(std::string_view phase, std::uint64_t step,
                                        const SaveInfo& info, bool may_be_delta) const {
  store::SavePlace place{
      .phase = std::string(phase), .step = step, .file = run_.file_name(phase, step), .info = info};
  place.path = run_.phase_folder(phase) / place.file;
  io::check_output_name(place.path, session().output(info.replace));
  const std::unique_lock held = lock();
  // Its file is there before it is the latest, and would seem to be left behind.
  place.hold = held_files_->hold(place.file);
  if (info.replace && folder().files().has_file(place.path)) {
    const store::RunListing listing = folder().list(phase);
    std::vector<std::string> changed = store::dependents_of(listing, place.file);
    changed.push_back(place.file);
    // Waiting for it might be waiting for who called this.
    if (std::ranges::any_of(changed, [&](const auto& file) { return held_files_->is_base(file); }))
      throw UsageError(ErrorCode::wrong_state,
                       "a save under way makes a delta of it: it cannot be replaced before that "
                       "has ended",
                       {.path = place.path.string()});
    store::squash_dependents({.run = folder(),
                              .phase = place.phase,
                              .durability = options_.durability,
                              .cancel = options_.cancel},
                             listing, place.file);
  }
  if (!may_be_delta) return place;
  const auto left = full_saves_left_.find(phase);
  if (left != full_saves_left_.end() && left->second > 0) {
    --left->second;
    return place;
  }
  place.delta = store::choose_delta(run_.config(), folder().list(phase), place.file);
  if (place.delta) place.hold = held_files_->hold(place.file, place.delta->base);
  return place;
}

void RunWriter::Impl::begin_replacing(store::SavePlace& place) const {
  if (!place.info.replace) return;
  const std::unique_lock held = lock();
  place.replacement = std::make_shared<store::Replacement>(session(), place.phase, place.path);
}

store::SavePlace RunWriter::Impl::place_of(const Writer& writer, const SaveInfo& info) const {
  const std::filesystem::path& target = container::file_save_of(writer).path();
  const std::string name = target.filename().string();
  for (const PhaseConfig& phase : run_.config().phases) {
    const auto step = store::checkpoint_step(name, phase.name, run_.config().extension);
    if (!step || resolved_path(run_.phase_folder(phase.name)) != resolved_path(folder_of(target)))
      continue;
    store::SavePlace place{.phase = phase.name,
                           .step = *step,
                           .file = name,
                           .path = run_.phase_folder(phase.name) / name,
                           .info = info,
                           .hold = held_files_->hold(name)};
    place.info.replace = container::file_save_of(writer).options().output.replace;
    return place;
  }
  throw UsageError(ErrorCode::bad_argument,
                   "the writer was not made by new_checkpoint() of this run",
                   {.path = target.string()});
}

SaveOptions RunWriter::Impl::save_options(SaveOptions options, bool replace) const {
  options.sha256 = true;
  const bool reproducible = options.output.reproducible;
  options.output = session().output(replace);
  options.output.reproducible = reproducible;
  if (!options.work.cancel.stop_possible()) options.work.cancel = options_.cancel;
  return options;
}

StoredCheckpoint RunWriter::Impl::publish(store::SavePlace& place, const store::SavedFile& file) {
  const store::SaveSession own = session();
  std::string sha256 = file.sha256;
  if (sha256.empty()) {
    own.step(SaveStep::sidecar);
    // Not to be stopped: the file has its name, and without its digest and its line it would be a
    // checkpoint that nobody knows of.
    const Digest256 digest = store::digest_of(*own.files().open(place.path));
    container::write_sha256_file(place.path, digest, own.output());
    sha256 = hex(digest.bytes);
  }
  own.step(SaveStep::sync_folder);
  store::JournalLine line{.file = place.file,
                          .step = place.step,
                          .bytes = file.bytes,
                          .saved_at = store::now_seconds(),
                          .sha256 = sha256,
                          .metric = place.info.metric};
  if (file.is_delta) {
    line.base = place.delta->base;
    line.depth = place.delta->depth;
    line.read_factor = file.read_factor;
  }
  std::unique_lock held = lock();
  // Another thread may have saved a later one meanwhile.
  if (place.is_published) require_newest(place, folder().list(place.phase));
  // What comes after its line does not bring the old one back.
  if (place.replacement) place.replacement->done();
  store::Published published = store::publish(
      own, place.phase, line, [&] { place.visible_seconds = place.watch.seconds(); });
  // It is the latest: what it is based on is known by that.
  place.hold.reset();
  own.step(SaveStep::retain);
  StorePruneResult pruned =
      retain(place.phase, run_.config().phase(place.phase).retention, false, held);
  return {.entry = std::move(published.entry),
          .path = place.path,
          .is_best = published.is_best,
          .removed = std::move(pruned.removed),
          .sync_seconds = file.sync_seconds};
}

StorePruneResult RunWriter::Impl::retain(std::string_view phase, const RetentionPolicy& policy,
                                         bool is_dry,
                                         std::unique_lock<io::ProcessMutex>& held) const {
  const store::PruneJob job{.run = folder(),
                            .phase = std::string(phase),
                            .durability = options_.durability,
                            .cancel = options_.cancel,
                            .on_warning = options_.on_warning};
  const store::RetentionPlan plan =
      store::plan_whole({.job = job,
                         .policy = policy,
                         .protect = [this](store::RunListing& listing) { protect_held(listing); },
                         .notes = !is_dry},
                        held);
  StorePruneResult result{.entries = plan.listing.entries, .decisions = plan.decisions};
  if (is_dry) {
    for (const RetentionDecision& decision : plan.decisions) {
      if (decision.fate != RetentionDecision::Fate::remove) continue;
      result.removed.push_back(plan.listing.entries[decision.entry].file);
      result.freed_bytes += plan.listing.entries[decision.entry].bytes;
    }
    return result;
  }
  store::Pruned pruned = store::prune(job, plan.listing, plan.decisions);
  result.removed = std::move(pruned.removed);
  result.freed_bytes = pruned.freed_bytes;
  return result;
}

RebaseResult RunWriter::Impl::rebase(std::string_view phase, unsigned max_depth) const {
  return store::rebase_phase(
      {.run = folder(),
       .phase = std::string(phase),
       .durability = options_.durability,
       .cancel = options_.cancel,
       .on_warning = options_.on_warning},
      max_depth, [this](const std::string& file) { return held_files_->is_base(file); });
}

StoredCheckpoint RunWriter::Impl::save_at(store::SavePlace& place, const store::SaveAt& full,
                                          const store::TryDelta& delta) {
  const Stopwatch watch;
  begin_replacing(place);
  std::optional<store::SavedFile> file;
  if (place.delta) {
    // A delta is taken of what is not there, and a digest of what was is not its own.
    if (place.info.replace) container::remove_sha256_file(place.path, session().output());
    try {
      file = delta(place);
    } catch (const IntegrityError& failure) {
      warn_of_base(place, failure);
      place.delta.reset();
    }
    try {
      if (file) file = replace_if_dear(place, *std::move(file), full);
    } catch (...) {
      session().files().remove(place.path);
      throw;
    }
  }
  if (!file) file = full(place);
  StoredCheckpoint stored = publish(place, *file);
  stored.seconds = watch.seconds();
  return stored;
}

void RunWriter::Impl::protect_held(store::RunListing& listing) const {
  const std::vector<std::string> held = held_files_->all();
  for (CheckpointEntry& entry : listing.entries)
    if (std::ranges::find(held, entry.file) != held.end())
      entry.protected_by.emplace_back(store::kUnderWay);
}

bool RunWriter::Impl::is_too_dear(const store::SavePlace& place, store::SavedFile& delta) {
  const DeltaPolicy& policy = run_.config().deltas;
  if (policy.kind != DeltaPolicy::Kind::cost) return false;
  // One that is too large need not be measured.
  if (!store::is_too_dear(policy, *place.delta, delta.bytes, std::nullopt)) {
    if (!place.is_published)
      delta.read_factor = store::measure_read_factor(folder().files(), place.path);
    if (!store::is_too_dear(policy, *place.delta, delta.bytes, delta.read_factor)) return false;
  }
  // If the chain is longer, a dear delta only says that the chain is long enough.
  if (place.delta->depth == 1) {
    const std::unique_lock held = lock();
    full_saves_left_.insert_or_assign(place.phase, kFullSavesAfterDearDelta);
  }
  return true;
}

store::SavedFile RunWriter::Impl::replace_if_dear(store::SavePlace& place, store::SavedFile delta,
                                                  const store::SaveAt& full) {
  delta.is_delta = true;
  if (!is_too_dear(place, delta)) return delta;
  store::SavePlace whole = place;
  whole.delta.reset();
  whole.info.replace = true;
  store::SavedFile file = full(whole);
  whole.hold = held_files_->hold(place.file);
  place = std::move(whole);
  return file;
}

}  // namespace thalia
