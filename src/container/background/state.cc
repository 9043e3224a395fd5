// One save as its handles see it. mutex_ guards the end and its result; progress is two atomics,
// because it changes with every extent and may be read at any time. An error counts as seen when a
// handle has reported it, or a thread is waiting that will; wait_all() reports the others.
#include "container/background/state.h"

#include <algorithm>

#include "container/background/in_save.h"
#include "container/background/queue.h"
#include "thalia/error.h"

namespace thalia::detail {

void SaveState::advance(std::uint64_t done, std::uint64_t total) noexcept {
  // In this order, so that a thread that sees `done` sees the total that belongs to it.
  total_.store(total, std::memory_order_relaxed);
  written_.store(done, std::memory_order_release);
}

SaveProgress SaveState::progress() const noexcept {
  const std::uint64_t done = written_.load(std::memory_order_acquire);
  return {done, total_.load(std::memory_order_relaxed)};
}

void SaveState::end(std::unique_lock<std::mutex> lock) noexcept {
  done_.store(true, std::memory_order_release);
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

bool SaveState::done() const {
  if (has_ended()) return true;
  process_.require("the save");
  return false;
}

void SaveState::require_waitable() const {
  process_.require("the save");
  InSave::refuse(queue().get());
}

SaveResult SaveState::wait() {
  if (!has_ended()) {
    require_waitable();
    std::unique_lock lock(mutex_);
    ++waiting_;
    ended_.wait(lock, [&] { return has_ended(); });
    --waiting_;
  }
  if (!error_) return result_;
  error_seen_ = true;
  std::rethrow_exception(error_);
}

bool SaveState::wait_for(std::chrono::nanoseconds time) {
  if (has_ended()) return true;
  require_waitable();
  // The longest times would overflow the clock that they are added to.
  const std::chrono::nanoseconds most = std::chrono::hours(24 * 365);
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, std::min(time, most), [&] { return has_ended(); });
}

void SaveState::cancel() {
  if (done()) return;
  // Without the saver there is no save left: it waited for all of them.
  if (const auto queue = this->queue()) queue->cancel(*this);
}

std::exception_ptr SaveState::see_error() noexcept {
  if (!has_ended() || !error_) return nullptr;
  error_seen_ = true;
  return error_;
}

bool SaveState::has_unseen_error() const noexcept {
  return has_ended() && error_ && !error_seen_;
}

}  // namespace thalia::detail
