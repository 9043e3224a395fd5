// Jobs on a bounded pool of threads whose results come back in the order in which they were given.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/parallel.h"

namespace thalia {

/// A ring of jobs. One thread fills next(), calls submit(), and takes front() in the same order;
/// the pool's threads do `work` on jobs in between. With one thread the work is done in the first
/// front(). Externally synchronised.
template <typename Job>
class OrderedPool {
 public:
  /// @param capacity jobs that exist at once, at least 1. @param work called once for each job,
  /// by any thread, for different jobs at once.
  OrderedPool(unsigned threads, std::size_t capacity, std::function<void(Job&)> work)
      : work_(std::move(work)), slots_(capacity) {
    most_threads_ = resolve_threads(threads, capacity);
    if (most_threads_ == 1) most_threads_ = 0;
  }
  ~OrderedPool() {
    for (std::jthread& thread : threads_) thread.request_stop();
    // A thread between its look at the stop and its sleep holds the mutex.
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }
  OrderedPool(const OrderedPool&) = delete;
  OrderedPool& operator=(const OrderedPool&) = delete;

  bool full() const noexcept { return submitted_ - taken_ == slots_.size(); }
  bool empty() const noexcept { return submitted_ == taken_; }

  /// The job to fill and submit next. It may have been used before, and is as it was left. Do not
  /// call it when full().
  Job& next() noexcept { return slots_[submitted_ % slots_.size()].job; }
  void submit() {
    {
      const std::lock_guard lock(mutex_);
      Slot& slot = slots_[submitted_ % slots_.size()];
      slot.done = false;
      slot.error = nullptr;
      ++submitted_;
    }
    changed_.notify_one();
    // At most one thread for each job that exists: a few jobs need only a few threads.
    if (threads_.size() < std::min<std::size_t>(most_threads_, submitted_ - taken_)) start_thread();
  }

  /// The oldest job that was submitted, done; pop() frees it. Do not call it when empty(). Throws
  /// what its work threw.
  Job& front() {
    Slot& slot = slots_[taken_ % slots_.size()];
    if (threads_.empty()) {
      if (!slot.done) slot.error = attempt(slot.job);
      slot.done = true;
    } else {
      std::unique_lock lock(mutex_);
      done_.wait(lock, [&] { return slot.done; });
    }
    if (slot.error) std::rethrow_exception(slot.error);
    return slot.job;
  }
  void pop() noexcept { ++taken_; }

  /// The number of threads that were started.
  std::size_t threads() const noexcept { return threads_.size(); }

 private:
  struct Slot {
    Job job{};
    bool done = false;
    std::exception_ptr error;
  };

  void start_thread() {
    try {
      threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
    } catch (const std::system_error&) {
      // The system gives no more; the threads that run do the work, or front() does.
      most_threads_ = static_cast<unsigned>(threads_.size());
    }
  }

  std::exception_ptr attempt(Job& job) {
    try {
      work_(job);
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  void serve(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop.stop_requested() || started_ != submitted_; });
      if (stop.stop_requested()) return;
      Slot& slot = slots_[started_++ % slots_.size()];
      lock.unlock();
      std::exception_ptr error = attempt(slot.job);
      lock.lock();
      slot.error = std::move(error);
      slot.done = true;
      done_.notify_one();
    }
  }

  const std::function<void(Job&)> work_;
  std::vector<Slot> slots_;
  unsigned most_threads_ = 0;
  std::size_t submitted_ = 0;  ///< guarded by mutex_, but for reads of the thread that submits
  std::size_t started_ = 0;    ///< guarded by mutex_
  std::size_t taken_ = 0;      ///< of the thread that takes
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable done_;
  std::vector<std::jthread> threads_;  ///< destroyed first: they use all of the above
};

}  // namespace thalia
