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

#include "thalia/async_save.h"

namespace thalia::detail {

/// Internally synchronised.
class SaveState {
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

  SaveProgress progress() const noexcept;
  bool done() const noexcept;
  bool skipped() const noexcept;
  SaveResult wait();
  bool wait_for(std::chrono::nanoseconds time);
  /// The error; whoever asks has seen it.
  std::exception_ptr see_error() noexcept;
  /// Ended with an error that nobody has seen.
  bool has_unseen_error() const noexcept;

 private:
  void end(std::unique_lock<std::mutex> lock) noexcept;

  const std::weak_ptr<SaveQueue> queue_;
  std::stop_source stop_;
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> total_{0};
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  // Guarded by mutex_:
  bool done_ = false;
  bool skipped_ = false;
  bool error_seen_ = false;
  unsigned waiting_ = 0;  ///< threads in wait(), who will see the error
  SaveResult result_;
  std::exception_ptr error_;
};

}  // namespace thalia::detail
