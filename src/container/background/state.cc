// One save as its handles see it. mutex_ guards the end and its result; progress is two atomics,
// because it changes with every extent and may be read at any time. An error counts as seen when a
// handle has reported it, or a thread is waiting that will; wait_all() reports the others.
#include "container/background/state.h"

#include <algorithm>

#include "thalia/error.h"

namespace thalia::detail {

void SaveState::advance(std::uint64_t done, std::uint64_t total) noexcept {
  // In this order, so that whoever sees `done` sees the total that belongs to it.
  total_.store(total, std::memory_order_relaxed);
  written_.store(done, std::memory_order_release);
}

SaveProgress SaveState::progress() const noexcept {
  const std::uint64_t done = written_.load(std::memory_order_acquire);
  return {done, total_.load(std::memory_order_relaxed)};
}

void SaveState::end(std::unique_lock<std::mutex> lock) noexcept {
  done_ = true;
  // Unlocked first, so that those who wake need not wait again.
  lock.unlock();
  ended_.notify_all();
}

void SaveState::finish(SaveResult result) noexcept {
  std::unique_lock lock(mutex_);
  result_ = std::move(result);
  end(std::move(lock));
}

void SaveState::fail(std::exception_ptr error) noexcept {
  std::unique_lock lock(mutex_);
  error_ = std::move(error);
  // A thread in wait() is going to throw it.
  error_seen_ = waiting_ > 0;
  end(std::move(lock));
}

void SaveState::skip() noexcept {
  std::unique_lock lock(mutex_);
  error_ = std::make_exception_ptr(
      CancelledError(ErrorCode::cancelled, "skipped, as another save is unfinished"));
  skipped_ = true;
  end(std::move(lock));
}

bool SaveState::skipped() const noexcept {
  const std::lock_guard lock(mutex_);
  return skipped_;
}

bool SaveState::done() const noexcept {
  const std::lock_guard lock(mutex_);
  return done_;
}

SaveResult SaveState::wait() {
  std::unique_lock lock(mutex_);
  ++waiting_;
  ended_.wait(lock, [&] { return done_; });
  --waiting_;
  if (!error_) return result_;
  error_seen_ = true;
  const std::exception_ptr error = error_;
  lock.unlock();
  std::rethrow_exception(error);
}

bool SaveState::wait_for(std::chrono::nanoseconds time) {
  // The longest times would overflow the clock that they are added to.
  const std::chrono::nanoseconds most = std::chrono::hours(24 * 365);
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, std::min(time, most), [&] { return done_; });
}

std::exception_ptr SaveState::see_error() noexcept {
  const std::lock_guard lock(mutex_);
  error_seen_ = error_seen_ || error_ != nullptr;
  return error_;
}

bool SaveState::has_unseen_error() const noexcept {
  const std::lock_guard lock(mutex_);
  return error_ && !error_seen_;
}

}  // namespace thalia::detail
