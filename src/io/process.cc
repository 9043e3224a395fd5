#include "io/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "thalia/error.h"

namespace thalia::io {

std::int64_t process_id() noexcept {
  return ::getpid();
}

void OwnProcess::require(std::string_view what, std::string_view path) const {
  if (is_this()) return;
  throw UsageError(ErrorCode::wrong_state,
                   std::string(what) + " belongs to process " + std::to_string(id_) +
                       ", from which this one was forked: make a new one here",
                   {.path = std::string(path)});
}

void ThreadLock::lock() {
  const int own = static_cast<int>(process_id());
  int holder = 0;
  while (!holder_.compare_exchange_strong(holder, own, std::memory_order_acquire,
                                          std::memory_order_relaxed)) {
    if (holder != own) {
      throw UsageError(ErrorCode::wrong_state,
                       "a thread of process " + std::to_string(holder) +
                           " was reading it when this process was forked: open it anew here");
    }
    holder_.wait(holder, std::memory_order_relaxed);
    holder = 0;
  }
}

void end_at_once(std::string_view text) noexcept {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(1);
}

void be_nice(int steps) noexcept {
  if (steps == 0) return;
  // On Linux PRIO_PROCESS with 0 is the calling thread, not the process.
  // A nice value may be -1, so only errno tells an error from a value.
  errno = 0;
  const int now = ::getpriority(PRIO_PROCESS, 0);
  if (errno == 0) ::setpriority(PRIO_PROCESS, 0, now + steps);
}

}  // namespace thalia::io
