// The process and its threads as the operating system knows them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "thalia/detail/once.h"

namespace thalia::io {

/// Differs in a forked child.
std::int64_t process_id() noexcept;
/// Whether there is a process of this number, here and in what this process sees of the machine.
bool is_process(std::int64_t id) noexcept;

/// The machine's name, printable.
std::string host_name();

/// The process that made something. A forked child has a copy of all that its parent has, but not
/// its threads, and shares its files: what the parent goes on with is not the child's to use or
/// end.
class OwnProcess {
 public:
  OwnProcess() noexcept : id_(process_id()) {}

  /// False in a forked child.
  bool is_this() const noexcept { return process_id() == id_; }
  /// @param what belongs to that process, and its path, which may be empty, for the message.
  /// @throws UsageError (wrong_state) in a forked child.
  void require(std::string_view what, std::string_view path = {}) const;

 private:
  std::int64_t id_;
};

/// A mutex of what has threads. In a forked child, where it may be locked for good by a thread that
/// is not there, it is never waited for: lock() throws UsageError (wrong_state).
class ProcessMutex {
 public:
  /// @param what it guards; stays.
  explicit ProcessMutex(std::string_view what) noexcept : what_(what) {}

  void lock() {
    process_.require(what_);
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }
  const OwnProcess& process() const noexcept { return process_; }
  std::string_view what() const noexcept { return what_; }

 private:
  std::string_view what_;
  OwnProcess process_;
  std::mutex mutex_;
};

/// From now on no process is forked while `mutex` is locked, so that a forked child finds it free,
/// and whole what it guards. @param mutex of something that all of the process shares, and that is
/// never destroyed; who has it waits for nothing. @throws IoError, std::bad_alloc.
void hold_over_forks(std::mutex& mutex);
/// The same where who has the mutex may wait for the thread that forks. That one goes on after
/// `patience`, and its child has the mutex anew.
void hold_over_forks(std::timed_mutex& mutex, std::chrono::milliseconds patience);

using detail::ThreadLock;

/// Work that is done when it is first needed, whichever thread needs it. Stands for std::call_once,
/// which ThreadSanitizer does not know to end by an exception: after work that throws, as on a
/// damaged file, the next call would wait for good.
class Once {
 public:
  /// Back when `work` was done, by this call or another, and what it wrote may be read. If it
  /// throws, this call throws the same, and the next one tries again. @throws as
  /// ThreadLock::lock().
  template <typename Work>
  void run(const Work& work) {
    if (done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(lock_);
    if (done_.load(std::memory_order_relaxed)) return;
    work();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> done_{false};
  ThreadLock lock_;
};

/// Writes `text` to stderr and ends the process as a signal would: of a forked child that has
/// nobody to return to.
[[noreturn]] void end_at_once(std::string_view text) noexcept;

/// Raises the calling thread's nice value by `steps` (0 to 19); threads that it starts from now on
/// have the new value too. Best effort.
void be_nice(int steps) noexcept;

}  // namespace thalia::io
