// What the handles of one save share with the queue that runs it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

#include "io/system/process.h"
#include "thalia/async_save.h"

namespace thalia::detail {

/// Internally synchronised. A forked child may look at one that had ended: that changes no more,
/// and is read without the lock.
class SaveState final : public SaveOutcome<SaveResult> {
 public:
  explicit SaveState(std::weak_ptr<SaveQueue> queue) : queue_(std::move(queue)) {}

  void advance(std::uint64_t done, std::uint64_t total) noexcept;
  void finish(SaveResult result) noexcept;
  void fail(std::exception_ptr error) noexcept;
  /// Ends before it was begun.
  void skip() noexcept;
  std::stop_source& stop() noexcept { return stop_; }
  /// Empty once the saver is gone.
  std::shared_ptr<SaveQueue> queue() const noexcept { return queue_.lock(); }

  SaveProgress progress() const noexcept override;
  bool has_ended() const noexcept { return done_.load(std::memory_order_acquire); }
  /// @throws UsageError (wrong_state) in a forked child if it had not ended: it never will.
  bool done() const override;
  bool skipped() const noexcept override { return has_ended() && skipped_; }
  // Until it has ended, @throws UsageError (wrong_state) in a forked child, and within a save of
  // the same queue.
  SaveResult wait() override;
  bool wait_for(std::chrono::nanoseconds time) override;
  void cancel() override;
  /// The error; a caller that asks has seen it.
  std::exception_ptr see_error() noexcept override;
  /// Ended with an error that nobody has seen.
  bool has_unseen_error() const noexcept;

 private:
  void end(std::unique_lock<std::mutex> lock) noexcept;
  void require_waitable() const;

  const io::OwnProcess process_;
  const std::weak_ptr<SaveQueue> queue_;
  std::stop_source stop_;
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> total_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  unsigned waiting_ = 0;  ///< guarded by mutex_: threads in wait(), who will see the error
  // Set before done_, under mutex_, and not changed after it:
  bool skipped_ = false;
  SaveResult result_;
  std::exception_ptr error_;
  std::atomic<bool> done_{false};
  std::atomic<bool> error_seen_{false};
};

}  // namespace thalia::detail
