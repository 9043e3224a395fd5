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
    // A caller who waits cannot release what he holds; and where he waits for what no unit under
    // way brings, more memory is the only way on.
    const std::uint64_t used = ahead_bytes_ + (waiting_ ? 0 : held_bytes_);
    const bool fits = used <= memory_bytes_ && bytes <= memory_bytes_ - used;
    return ended_ || fits || (waiting_ && unfinished_units_ == 0 && !deliverable());
  });
  ahead_bytes_ += bytes;
  return !ended_;
}

bool StreamScheduler::push(std::size_t unit) {
  std::unique_lock lock(mutex_);
  feeder_.wait(lock, [&] { return ended_ || ready_.size() < ahead_; });
  if (ended_) return false;
  ready_.push_back(unit);
  ++unfinished_units_;
  workers_.notify_one();
  return true;
}

void StreamScheduler::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  workers_.notify_all();
}

std::optional<std::size_t> StreamScheduler::take(bool wait) {
  std::unique_lock lock(mutex_);
  if (wait) workers_.wait(lock, [&] { return ended_ || closed_ || !ready_.empty(); });
  if (ended_ || ready_.empty()) return std::nullopt;
  const std::size_t unit = ready_.front();
  ready_.pop_front();
  feeder_.notify_one();
  return unit;
}

void StreamScheduler::complete_unit() noexcept {
  const std::lock_guard lock(mutex_);
  if (--unfinished_units_ == 0) feeder_.notify_one();
}

void StreamScheduler::complete_tensor(std::size_t tensor) {
  const std::lock_guard lock(mutex_);
  if (delivery_.empty()) {
    as_completed_.push_back(tensor);
  } else {
    complete_[tensor] = 1;
  }
  if (waiting_ && deliverable()) caller_.notify_one();
}

void StreamScheduler::fail(std::exception_ptr error) noexcept {
  const std::lock_guard lock(mutex_);
  if (!ended_) error_ = std::move(error);
  ended_ = true;
  feeder_.notify_all();
  workers_.notify_all();
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
    waiting_ = true;
    feeder_.notify_one();
    caller_.wait(lock, found);
    waiting_ = false;
  }
  if (ended_) return std::nullopt;
  return next;
}

void StreamScheduler::hand_out(std::uint64_t bytes) {
  if (delivery_.empty()) as_completed_.pop_front();
  ++handed_out_;
  ahead_bytes_ -= bytes;
  held_bytes_ += bytes;
  feeder_.notify_one();
}

void StreamScheduler::release(std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  held_bytes_ -= bytes;
  feeder_.notify_one();
}

}  // namespace thalia::container
