// The one lock of a stream. Three parties meet here: one feeder thread admits tensors and pushes
// units, workers take and read them, and the caller takes complete tensors. All state is guarded by
// mutex_; every wait is on a condition variable of its own party, so nobody wakes the wrong one. A
// unit may be pushed while its later tensors have no memory: its worker waits for them one by one,
// and what it completes before is handed out meanwhile. That can only be the last unit pushed.
//
// Invariant: an admitted byte is counted in ahead_bytes_ until its tensor is handed out, then in
// held_bytes_ until the caller drops it. Their sum stays within memory_bytes_, with two exceptions
// without which a stream would wait forever: see admit(). ended_ is never taken back; once it is
// set, every wait returns.
#include "container/stream/scheduler.h"

#include <utility>

namespace thalia::container {

StreamScheduler::StreamScheduler(std::uint64_t memory_bytes, std::size_t ahead,
                                 std::vector<std::size_t> delivery, std::size_t tensors)
    : memory_bytes_(memory_bytes),
      ahead_(ahead),
      tensors_(tensors),
      delivery_(std::move(delivery)),
      complete_(delivery_.size()) {}

bool StreamScheduler::admit(std::uint64_t bytes) {
  std::unique_lock lock(mutex_);
  feeder_.wait(lock, [&] {
    // A caller that waits in next() cannot release what it holds, so that does not count. If it
    // waits and no pushed unit is left that could complete its tensor, this one has to be read,
    // whatever memory it takes. A unit that waits for just this memory completes nothing.
    const std::uint64_t used = ahead_bytes_ + (waiting_ ? 0 : held_bytes_);
    // Two comparisons, because used + bytes could wrap, and used may be beyond the limit already.
    const bool fits = used <= memory_bytes_ && bytes <= memory_bytes_ - used;
    const std::size_t stuck = starving_ ? 1 : 0;
    return ended_ || fits || (waiting_ && unfinished_units_ == stuck && !deliverable());
  });
  ahead_bytes_ += bytes;
  return !ended_;
}

bool StreamScheduler::push(std::size_t unit) {
  std::unique_lock lock(mutex_);
  // A unit that waits for a worker costs nothing itself, but its tensors have their memory already,
  // the caller's among it.
  feeder_.wait(lock, [&] { return ended_ || ready_.size() < ahead_; });
  if (ended_) return false;
  ready_.push_back(unit);
  ++unfinished_units_;
  workers_.notify_one();
  return true;
}

void StreamScheduler::note_begun(std::size_t end) {
  const std::lock_guard lock(mutex_);
  begun_ = end;
  if (!starving_) return;
  starving_ = false;  // the worker has something to do, even before it wakes up
  begun_changed_.notify_one();
}

void StreamScheduler::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  workers_.notify_all();
}

std::optional<std::size_t> StreamScheduler::take(bool wait) {
  std::unique_lock lock(mutex_);
  // A worker with reads in flight does not wait here: it has results to process, and nobody else
  // would process them.
  if (wait) workers_.wait(lock, [&] { return ended_ || closed_ || !ready_.empty(); });
  if (ended_ || ready_.empty()) return std::nullopt;
  const std::size_t unit = ready_.front();
  ready_.pop_front();
  feeder_.notify_one();
  return unit;
}

std::optional<std::size_t> StreamScheduler::wait_begun(std::size_t tensor) {
  std::unique_lock lock(mutex_);
  if (begun_ <= tensor && !ended_) {
    starving_ = true;
    feeder_.notify_one();  // admit() may be waiting for just this
    begun_changed_.wait(lock, [&] { return ended_ || begun_ > tensor; });
  }
  if (ended_) return std::nullopt;
  return begun_;
}

// A worker calls this after complete_tensor() for all tensors that the unit completed. In the other
// order the feeder could see no unit under way and nothing deliverable, and admit beyond the limit.
void StreamScheduler::complete_unit() noexcept {
  const std::lock_guard lock(mutex_);
  if (--unfinished_units_ <= 1) feeder_.notify_one();  // the one that is left may be starving
}

void StreamScheduler::complete_tensor(std::size_t tensor) {
  const std::lock_guard lock(mutex_);
  if (delivery_.empty()) {
    as_completed_.push_back(tensor);
  } else {
    complete_[tensor] = 1;
  }
  // In a given order, a tensor after the next one is no reason to wake the caller.
  if (waiting_ && deliverable()) caller_.notify_one();
}

// The first one to end the stream decides what the caller gets: what other threads throw later is a
// consequence, and stop() leaves no error.
void StreamScheduler::fail(std::exception_ptr error) noexcept {
  const std::lock_guard lock(mutex_);
  if (!ended_) error_ = std::move(error);
  ended_ = true;
  feeder_.notify_all();
  workers_.notify_all();
  begun_changed_.notify_all();
  caller_.notify_all();
}

bool StreamScheduler::has_ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::exception_ptr StreamScheduler::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::optional<std::size_t> StreamScheduler::deliverable() const {
  if (handed_out_ == tensors_) return std::nullopt;
  if (delivery_.empty()) {
    if (as_completed_.empty()) return std::nullopt;
    return as_completed_.front();
  }
  const std::size_t next = delivery_[handed_out_];
  if (complete_[next] == 0) return std::nullopt;
  return next;
}

std::optional<std::size_t> StreamScheduler::wait_deliverable(std::unique_lock<std::mutex>& lock) {
  std::optional<std::size_t> next;
  const auto found = [&] {
    return ended_ || handed_out_ == tensors_ || (next = deliverable()).has_value();
  };
  if (!found()) {
    // admit() may be waiting for just this: it counts less while the caller waits.
    waiting_ = true;
    feeder_.notify_one();
    caller_.wait(lock, found);
    waiting_ = false;
  }
  if (ended_) return std::nullopt;
  return next;
}

// Under the lock of wait_next(), so that no byte is counted twice or not at all in between.
void StreamScheduler::hand_out(std::uint64_t bytes) {
  if (delivery_.empty()) as_completed_.pop_front();
  ++handed_out_;
  ahead_bytes_ -= bytes;
  held_bytes_ += bytes;
  feeder_.notify_one();
}

void StreamScheduler::withdraw(std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  ahead_bytes_ -= bytes;
  feeder_.notify_one();
}

void StreamScheduler::release(std::uint64_t bytes) noexcept {
  // A thread that the child has not may hold the mutex, and nobody waits for memory there.
  if (!process_.is_this()) return;
  const std::lock_guard lock(mutex_);
  held_bytes_ -= bytes;
  feeder_.notify_one();
}

}  // namespace thalia::container
