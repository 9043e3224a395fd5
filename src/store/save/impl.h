// RunWriter's own: the lock, the run, and the saves that are under way.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/inside.h"
#include "base/stopwatch.h"
#include "io/folder/lock.h"
#include "io/system/process.h"
#include "store/save/delta_choice.h"
#include "store/save/publish.h"
#include "store/save/replacement.h"
#include "store/save/session.h"
#include "thalia/store/writer.h"

namespace thalia::store {

/// Files of saves under way, and those that they are based on: they are not pruned. Internally
/// synchronised.
class HeldFiles : public std::enable_shared_from_this<HeldFiles> {
 public:
  /// For as long as what is returned lives. @param base of the delta that the file will be; empty:
  /// it will be none.
  std::shared_ptr<const void> hold(std::string file, std::string base = {});
  std::vector<std::string> all() const;
  /// A save under way makes a delta of it.
  bool is_base(const std::string& file) const;

 private:
  mutable std::mutex mutex_;
  std::multiset<std::string> files_;  ///< bases too
  std::multiset<std::string> bases_;
};

/// Where a checkpoint goes, and as what.
struct SavePlace {
  std::string phase;
  std::uint64_t step = 0;
  std::string file;
  std::filesystem::path path;
  SaveInfo info;
  std::optional<DeltaChoice> delta{};
  std::shared_ptr<Replacement> replacement{};
  std::shared_ptr<const void> hold{};  ///< on the file, and on the delta's base
  bool is_published = false;  ///< refused unless it is after the latest; nothing is measured
  Stopwatch watch{};
  std::optional<double> visible_seconds{};  ///< by the watch, once `latest` leads to it
};

/// What a save says about the file that it made.
struct SavedFile {
  std::uint64_t bytes = 0;
  std::string sha256{};  ///< empty: it has no digest beside it yet
  double seconds = 0;    ///< of the save, where another thread has done it
  double sync_seconds = 0;
  bool is_delta = false;
  std::optional<double> read_factor{};  ///< of a delta, as measured
};

/// The digest of a delta is missing: it is read off the file.
SavedFile saved_file(const SaveResult& saved);
SavedFile saved_delta(const DeltaResult& saved);

/// One way to save to a place, and the one of a delta.
using SaveAt = std::function<SavedFile(const SavePlace&)>;
using SaveDeltaAt = std::function<SavedFile(const SavePlace&, const ChainReader& base)>;
/// The same with a base of its own; nullopt where there is none, and the place has no delta then.
using TryDelta = std::function<std::optional<SavedFile>(SavePlace&)>;

}  // namespace thalia::store

namespace thalia {

namespace store {

/// For what goes on once a save has ended.
template <typename Result>
std::shared_ptr<detail::SaveControl> control_of(const SaveHandle<Result>& handle) {
  return detail::Inside::outcome(handle).pointer();
}

/// What the handles of a checkpoint's save share: the save, and what the publisher makes of it.
class StoreOutcome final : public detail::SaveOutcome<StoredCheckpoint> {
 public:
  StoreOutcome(std::shared_ptr<detail::SaveControl> of, SavePlace at,
               std::function<SavedFile()> file, SaveAt whole)
      : save(std::move(of)),
        place(std::move(at)),
        saved_file(std::move(file)),
        full(std::move(whole)) {}

  SaveProgress progress() const noexcept override { return save->progress(); }
  /// After all steps of the store.
  bool done() const override;
  bool skipped() const noexcept override { return save->skipped(); }
  StoredCheckpoint wait() override;
  bool wait_for(std::chrono::nanoseconds time) override;
  void cancel() override { save->cancel(); }
  std::exception_ptr see_error() noexcept override;

  const std::shared_ptr<detail::SaveControl> save;
  SavePlace place;
  std::function<SavedFile()> saved_file;  ///< waits for the save
  SaveAt full;

  std::mutex mutex{};
  std::condition_variable ended{};
  std::atomic<bool> has_ended{false};  ///< what is below stays from then on, and needs no lock
  StoredCheckpoint result{};
  std::exception_ptr error{};

 private:
  void require_waitable() const;
  io::OwnProcess process_{};
};

}  // namespace store

class RunWriter::Impl {
 public:
  Impl(const std::filesystem::path& folder, RunWriterOptions options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const Run& run() const noexcept { return run_; }
  const store::RunFolder& folder() const noexcept { return store::RunFolder::of(run_); }
  const RunWriterOptions& options() const noexcept { return options_; }
  store::SaveSession session() const { return {folder(), options_}; }
  /// No other process can be saving: the file system has locks, and this one's is held.
  bool is_alone() const noexcept { return !folder_lock_.missing(); }
  /// Held by whatever lists the run and changes it by what it found.
  std::unique_lock<io::ProcessMutex> lock() const { return std::unique_lock(mutex_); }

  /// @param may_be_delta the policy is asked. @throws UsageError (exists) if the step is there,
  /// (wrong_state) where it is replaced and a save under way makes a delta of it.
  store::SavePlace place(std::string_view phase, std::uint64_t step, const SaveInfo& info,
                         bool may_be_delta = false) const;
  /// The place of a step that is published, which replaces one that was left behind. @throws
  /// UsageError (bad_argument) unless it is after the latest.
  store::SavePlace place_to_publish(std::string_view phase, std::uint64_t step,
                                    const std::optional<double>& metric) const;
  /// Just before the save: of a file that is replaced, nothing is told from here on.
  void begin_replacing(store::SavePlace& place) const;
  store::SavePlace place_of(const Writer& writer, const SaveInfo& info) const;
  /// The checkpoint that the place's delta is taken against. Where that cannot be opened, it is
  /// told, and the place's file will be a full one.
  std::optional<ChainReader> base_of(store::SavePlace& place) const;
  /// Tells why a file is no delta.
  void warn_of_base(const store::SavePlace& place, const std::exception& failure) const;
  /// Options of a save into the run, made of those that the caller gave.
  SaveOptions save_options(SaveOptions options, bool replace) const;

  /// Digest, if it is missing; then what publish() does. The place's hold ends before retention.
  StoredCheckpoint publish(store::SavePlace& place, const store::SavedFile& file);
  /// Saves by `full`, or by `delta` if that is the place's, and then publishes.
  StoredCheckpoint save(store::SavePlace place, const store::SaveAt& full,
                        const store::SaveDeltaAt& delta = {});
  /// The same; what becomes of the place is told, also where it throws.
  StoredCheckpoint save_at(store::SavePlace& place, const store::SaveAt& full,
                           const store::TryDelta& delta);
  /// What a writer has declared, to a place that has a delta, in the background.
  SaveHandle<StoredCheckpoint> save_delta_later(AsyncSaver& saver, Writer& writer,
                                                store::SavePlace place, ChainReader base,
                                                Snapshot snapshot, std::function<void()> ready);
  /// Makes a full file of the delta that is at a place, for publish_later().
  store::SaveAt full_of_delta(SaveOptions options) const;
  /// publish() on a thread of its own, once the save is done. @param full makes a full file of a
  /// delta that is too dear.
  SaveHandle<StoredCheckpoint> publish_later(std::shared_ptr<detail::SaveControl> save,
                                             store::SavePlace place,
                                             std::function<store::SavedFile()> saved_file,
                                             store::SaveAt full = {});
  /// What the policy does not keep goes, or would go. @param held the lock, which is let go of
  /// while files are read.
  StorePruneResult retain(std::string_view phase, const RetentionPolicy& policy, bool is_dry,
                          std::unique_lock<io::ProcessMutex>& held) const;
  /// By who holds lock(). @throws as RunWriter::rebase().
  RebaseResult rebase(std::string_view phase, unsigned max_depth) const;
  /// In a forked child.
  bool is_foreign() const noexcept { return !mutex_.process().is_this(); }
  /// Within a callback that would wait for itself: leaves this to the publisher, which destroys it
  /// once all saves are published. @return false anywhere else, and if there is no publisher.
  bool end_later() noexcept;
  /// Says of entries that saves under way make or need them.
  void protect_held(store::RunListing& listing) const;

 private:
  void sweep() const;
  void require_newest(const store::SavePlace& place, const store::RunListing& listing) const;
  bool is_too_dear(const store::SavePlace& place, store::SavedFile& delta);
  /// For a delta that is in place and has not been reported yet: one that is too dear goes, and
  /// what `full` makes takes its place. If that fails the delta is there still.
  store::SavedFile replace_if_dear(store::SavePlace& place, store::SavedFile delta,
                                   const store::SaveAt& full);
  store::SavedFile replace_or_keep(store::SavePlace& place, store::SavedFile delta,
                                   const store::SaveAt& full);
  void work() noexcept;
  /// The next save is no delta of what this one could not be a delta of.
  void avoid_base(const store::SavePlace& place) const;
  void tell_failure(const store::SavePlace& place, const std::exception& failure) const noexcept;

  const RunWriterOptions options_;
  Run run_;  ///< does not change once this is constructed
  const io::FolderLock folder_lock_;
  mutable io::ProcessMutex mutex_{"the writer of the run"};
  /// For each phase whose last delta was too dear: how many saves are full before the next delta is
  /// tried.
  mutable std::map<std::string, unsigned, std::less<>> full_saves_left_;

  const std::shared_ptr<store::HeldFiles> held_files_ = std::make_shared<store::HeldFiles>();

  std::mutex queue_mutex_;
  std::condition_variable queue_changed_;
  std::deque<std::shared_ptr<store::StoreOutcome>> queue_;  ///< in the order of their saves
  bool closing_ = false;
  bool is_left_ = false;  ///< to the publisher, which destroys it
  std::thread publisher_;
};

namespace store {
inline auto& impl_of(const RunWriter& writer) {
  return *detail::Inside::impl(writer);
}
}  // namespace store

}  // namespace thalia
