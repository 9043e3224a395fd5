#include "io/system/process.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "thalia/error.h"
#include "thalia/text.h"

namespace thalia::io {
namespace {

// Locked by the thread that forks, from before the fork until after it.
struct HeldOverForks {
  struct Patient {
    std::timed_mutex* mutex;
    std::chrono::milliseconds patience;
    bool is_held = false;
  };
  std::mutex own;
  std::vector<std::mutex*> mutexes;
  std::vector<Patient> patient;

  void lock() {
    own.lock();
    for (Patient& one : patient) one.is_held = one.mutex->try_lock_for(one.patience);
    for (std::mutex* const mutex : mutexes) mutex->lock();
  }
  void unlock(bool in_child) {
    for (std::mutex* const mutex : mutexes) mutex->unlock();
    for (const Patient& one : patient) {
      if (one.is_held) {
        one.mutex->unlock();
      } else if (in_child) {
        new (one.mutex) std::timed_mutex;  // the thread that has it is not here
      }
    }
    own.unlock();
  }
};

// Never destroyed: a thread may fork while statics are.
HeldOverForks& held_over_forks() {
  static HeldOverForks* const instance = [] {
    auto made = std::make_unique<HeldOverForks>();
    const int error = ::pthread_atfork([] { held_over_forks().lock(); },  //
                                       [] { held_over_forks().unlock(false); },
                                       [] { held_over_forks().unlock(true); });
    if (error != 0) throw IoError("pthread_atfork", error);
    return made.release();
  }();
  return *instance;
}

}  // namespace

std::int64_t process_id() noexcept {
  return ::getpid();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "this machine";
  return printable(name.data());
}

bool is_process(std::int64_t id) noexcept {
  const auto number = static_cast<pid_t>(id);
  if (number <= 0 || number != id) return false;
  return ::kill(number, 0) == 0 || errno == EPERM;
}

void OwnProcess::require(std::string_view what, std::string_view path) const {
  if (is_this()) return;
  throw UsageError(ErrorCode::wrong_state,
                   std::string(what) + " belongs to process " + std::to_string(id_) +
                       ", from which this one was forked: make a new one here",
                   {.path = std::string(path)});
}

void hold_over_forks(std::mutex& mutex) {
  HeldOverForks& held = held_over_forks();
  const std::lock_guard lock(held.own);
  held.mutexes.push_back(&mutex);
}

void hold_over_forks(std::timed_mutex& mutex, std::chrono::milliseconds patience) {
  HeldOverForks& held = held_over_forks();
  const std::lock_guard lock(held.own);
  held.patient.push_back({&mutex, patience});
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

namespace thalia {

void detail::ThreadLock::lock() {
  const int own = static_cast<int>(io::process_id());
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

}  // namespace thalia
