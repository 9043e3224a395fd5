// ThreadLock: a mutex of what a forked child goes on using.
#pragma once

#include <atomic>

namespace thalia::detail {

/// The lock of what reads, as a file that is open is used in forked children too. As std::mutex,
/// but: where a process was forked while another thread of it held the lock, the child has that
/// state and not the thread, and would wait for good. There lock() throws UsageError (wrong_state).
/// What the parent's thread was about to fill is half filled.
class ThreadLock {
 public:
  ThreadLock() = default;
  ThreadLock(const ThreadLock&) = delete;
  ThreadLock& operator=(const ThreadLock&) = delete;

  void lock();
  void unlock() noexcept {
    holder_.store(0, std::memory_order_release);
    holder_.notify_one();
  }

 private:
  std::atomic<int> holder_{0};  ///< the process whose thread has it; 0: nobody
};

}  // namespace thalia::detail
