// The process and its threads as the operating system knows them.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

namespace thalia::io {

/// Differs in a forked child.
std::int64_t process_id() noexcept;

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

/// Raises the calling thread's nice value by `steps` (0 to 19); threads that it starts from now on
/// have the new value too. Best effort.
void be_nice(int steps) noexcept;

}  // namespace thalia::io
