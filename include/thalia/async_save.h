// Saving while training goes on: the state is copied, and a background thread writes the copy.
//
//   thalia::Writer first = declared("run.thalia");  // of all regions and tensors
//   thalia::AsyncSaver saver(first);  // memory for a copy of them is made ready meanwhile
//   // Train. Then, and as often as wanted:
//   auto save = saver.save_async(declared("run.thalia"));  // back after one copy of the state
//   // Change the tensors.
//   save.wait();  // or never: the file gets there
//
// docs/contribute/design.md, "Saving beside the training".
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "thalia/detail/held.h"
#include "thalia/writer.h"

namespace thalia {

namespace detail {
class SaveQueue;
}  // namespace detail

/// What becomes of the borrowed payloads while a save runs in the background.
enum class Snapshot {
  copy,      ///< copied before save_async() returns; the caller may change or free them then
  borrowed,  ///< not copied; the caller leaves them as they are until the save is done
};

/// What a save does that finds another one unfinished.
enum class WhenBusy {
  wait,     ///< waits until the other is done, then takes its snapshot: one snapshot in memory
  queue,    ///< takes its snapshot now and is written after the other
  replace,  ///< cancels the other and every one that waits. Where saves follow each other faster
            ///< than one takes, none is ever finished
  skip,     ///< is not begun, for loops that would rather miss one: SaveHandle::skipped()
};

template <typename Result = SaveResult>
class SaveHandle;

struct AsyncSaveOptions {
  WhenBusy when_busy = WhenBusy::wait;
  /// With queue and replace: saves unfinished at a time, the one that is being written among them,
  /// 1 to 1024. One more waits for the oldest. Each has a snapshot of its own.
  unsigned max_unfinished = 2;
  /// The most memory of all snapshots together. 0: half of the machine's, since a larger state
  /// leaves no room for its copy. A save waits while others hold too much of it; a save that alone
  /// needs more is refused.
  std::uint64_t max_snapshot_bytes = 0;
  /// Threads that take the snapshot, while the caller waits; 0: one a core.
  unsigned snapshot_threads = 0;
  /// Threads that hash, compress and write where the writer's Work::threads is 0; 0: a
  /// quarter of the cores, 1 to 4, which leaves the others to the training.
  unsigned background_threads = 0;
  /// Added to the nice value of the background threads, 0 to 19.
  int niceness = 10;
  /// Called on a background thread, or on the one that cancels, when a save has ended, well or not.
  /// What it throws is no save's error: wait_all() reports it.
  std::function<void(const SaveHandle<>&)> on_done{};
};

struct SaveProgress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;  ///< bytes; 0 until the first are written
};

namespace detail {

/// What the handles of one save share, whatever comes of it. Internally synchronised.
class SaveControl {
 public:
  SaveControl() = default;
  SaveControl(const SaveControl&) = delete;
  SaveControl& operator=(const SaveControl&) = delete;
  virtual ~SaveControl() = default;

  virtual SaveProgress progress() const noexcept = 0;
  virtual bool done() const = 0;
  virtual bool skipped() const noexcept = 0;
  virtual bool wait_for(std::chrono::nanoseconds time) = 0;
  virtual void cancel() = 0;
  virtual std::exception_ptr see_error() noexcept = 0;
};

template <typename Result>
class SaveOutcome : public SaveControl {
 public:
  virtual Result wait() = 0;
};

}  // namespace detail

/// One save in the background, of a writer, a brain or a checkpoint of a run, from save_async() on.
/// A cheap copyable handle; it may outlive the saver, and the save goes on without it. Internally
/// synchronised. In a forked child a save that had not ended never does: done(), wait(), wait_for()
/// and cancel() throw UsageError (wrong_state) then. So do wait() and wait_for() in a callback of
/// that save, or of another one of its saver, until it has ended.
template <typename Result>
class SaveHandle {
 public:
  /// @param outcome not null.
  explicit SaveHandle(std::shared_ptr<detail::SaveOutcome<Result>> outcome)
      : outcome_(std::move(outcome)) {}

  SaveProgress progress() const noexcept { return outcome_->progress(); }
  /// Ended: well, with an error, or cancelled.
  bool done() const { return outcome_->done(); }
  /// Not begun, as another one was unfinished: WhenBusy::skip. wait() throws CancelledError then.
  bool skipped() const noexcept { return outcome_->skipped(); }
  /// Until done. @return what the same save in the foreground would have. @throws what that would
  /// have, each time: IoError, UsageError; CancelledError after cancel(), a replacement, or a stop
  /// through Work::cancel.
  Result wait() const { return outcome_->wait(); }
  /// Until done, or for `time`. @return done().
  bool wait_for(std::chrono::nanoseconds time) const { return outcome_->wait_for(time); }
  /// Asks the save to end. One that has not begun ends at once, one that runs at its next extent or
  /// chunk: the file at the path stays the old one. One past its last extent is finished. Returns
  /// without waiting for it.
  void cancel() const { outcome_->cancel(); }
  /// The error that wait() would throw; null if there is none, or not yet.
  std::exception_ptr error() const noexcept { return outcome_->see_error(); }

 private:
  friend struct detail::Inside;
  detail::Shared<detail::SaveOutcome<Result>> outcome_;
};

/// Owns one background thread, which writes the saves one after the other, and the memory for
/// snapshots, which it keeps and uses again. Touching new memory costs several times the copy. So
/// tell the saver beforehand how much there will be, and the first save is as fast as the others:
/// construct it from a writer that has declared the state, or call reserve().
/// Internally synchronised, except for the destructor. If the process ends with a save unfinished,
/// the file that was at the path stays; nothing else is left if the file system has unnamed files.
/// std::exit cancels the saves of a saver that is not destroyed by then.
/// Callbacks of a save (progress, `ready`, on_done) that save or wait by its own saver would wait
/// for themselves: that is a UsageError (wrong_state). So is all but snapshot_bytes() and the
/// destructor in a forked child, which has the saver and not its thread: make a new one there.
class AsyncSaver {
 public:
  /// @throws UsageError for options out of bounds; IoError where no thread is to be had.
  explicit AsyncSaver(AsyncSaveOptions options = {});
  /// Reserves memory for saves of what `first` has declared, which is only looked at: commit it,
  /// save it, or drop it, and nothing is at its path. @throws as reserve().
  explicit AsyncSaver(const Writer& first, AsyncSaveOptions options = {});
  /// Waits for every save that was begun; cancel their handles for less. Errors of them that nobody
  /// has asked for are lost: call wait_all() first, or give on_done. In a callback of its own it
  /// does not wait, and they go on.
  ~AsyncSaver();
  AsyncSaver(const AsyncSaver&) = delete;
  AsyncSaver& operator=(const AsyncSaver&) = delete;

  /// Takes over a writer whose payloads are borrowed or have been streamed, and commits it in the
  /// background. Work::progress is called from there; Work::cancel and the handle's
  /// cancel() both end it, and Work::cancel a wait for other saves.
  /// Where it throws, or the save is skipped, nothing was taken over: the writer can be committed
  /// or saved again.
  /// @throws UsageError (wrong_state) for a writer that was committed, has failed, or was moved
  /// from, and for a connection without weights; (size_mismatch) for a streamed payload that is
  /// incomplete; (bad_argument) for a snapshot that passes max_snapshot_bytes; IoError if there
  /// is no memory, or streamed bytes cannot be written; CancelledError while it waits. What else
  /// commit() throws comes through the handle.
  /// @param ready called by the background thread before it reads a payload that is borrowed, and
  /// may wait until these are there, as for a device that is still copying them; what it throws is
  /// the save's error. Not called for one that was cancelled before.
  SaveHandle<> save_async(Writer&& writer, Snapshot snapshot = Snapshot::copy,
                          std::function<void()> ready = {});

  /// Makes memory ready for `snapshots` snapshots of `bytes` of payload each, so that the first
  /// ones are as fast as all others. Returns at once, unless other saves hold too much of
  /// max_snapshot_bytes: then it waits for them. The background thread touches the pages while it
  /// has nothing to write. A save that comes earlier uses what is there, and does not wait.
  /// @param cancel ends the waiting. @throws as save_async().
  void reserve(std::uint64_t bytes, unsigned snapshots = 1, const std::stop_token& cancel = {});
  /// The same for snapshots of what a writer has declared. @throws as save_async(); UsageError
  /// (wrong_state) for a writer that was moved from.
  void reserve(const Writer& declared, unsigned snapshots = 1, const std::stop_token& cancel = {});
  /// Waits until the pages that were reserved are there, or taken by saves.
  void wait_until_reserved();

  /// Waits until no save is unfinished. Then @throws the oldest error that no handle's wait() or
  /// error() has reported, once; call it again for the next. The last 100 are kept. A cancelled
  /// save is no error here.
  void wait_all();
  /// The same for as long as `time`. @return false, and throws nothing, where a save is unfinished
  /// then.
  bool wait_all_for(std::chrono::nanoseconds time);

  /// For who makes these calls on another thread than the one that asks for them: whether that one
  /// may. @throws UsageError (wrong_state) in a callback of a save of this one, and in a forked
  /// child.
  void check_caller() const;

  /// Memory held for snapshots, in use or kept for the next.
  std::uint64_t snapshot_bytes() const noexcept;

 private:
  friend struct detail::Inside;
  detail::Shared<detail::SaveQueue> queue_;
};

}  // namespace thalia
