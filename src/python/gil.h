// The GIL, let go of and taken, also while the process ends. Nothing else in the module does
// either.
#pragma once

#include <memory>
#include <utility>

#include <nanobind/nanobind.h>

#include "io/system/process.h"

namespace thalia::python {

/// Without the GIL, for as long as it lives. A thread that takes it while the interpreter ends is
/// ended in the midst of the library, and the process with it; so a thread that comes back too late
/// stays in here for good, as Python lets it from 3.14 on.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// Whether this thread has it: as PyGILState_Check(), which is not in the stable ABI.
bool has_gil() noexcept;

/// With the GIL, on any thread; but without it, and false, once the interpreter ends.
class Locked {
 public:
  Locked() noexcept;
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  explicit operator bool() const noexcept { return is_in_; }

 private:
  bool is_in_;
  bool is_late_ = false;
  bool had_let_go_ = false;       ///< of it, in an Unlocked around this scope
  PyThreadState* own_ = nullptr;  ///< of this scope alone
  PyGILState_STATE state_{};      ///< used if own_ is null
};

/// What its end may wait for needs the GIL: anybody who lets go of it last, with the GIL or not,
/// ends it without.
template <typename T, typename... Arguments>
std::shared_ptr<T> make_ended_unlocked(Arguments&&... arguments) {
  const auto end = [](T* object) {
    std::unique_ptr<T> last(object);
    if (!has_gil()) return;
    const Unlocked unlocked;
    last.reset();
  };
  return {new T(std::forward<Arguments>(arguments)...), end};
}

/// @throws CancelledError that says so.
[[noreturn]] void fail_process_ends();

/// Where a callback forked, for the child, which has no other thread and nobody to come back to:
/// says so and ends it.
[[noreturn]] void end_forked_child() noexcept;

/// action() with the GIL, for callbacks. @throws CancelledError once the interpreter ends.
template <typename Action>
void with_gil(const Action& action) {
  const Locked locked;
  if (!locked) fail_process_ends();
  const io::OwnProcess process;
  try {
    action();
  } catch (...) {
    if (!process.is_this()) end_forked_child();
    throw;
  }
  if (!process.is_this()) end_forked_child();
}

}  // namespace thalia::python
