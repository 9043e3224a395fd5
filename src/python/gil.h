// The GIL, let go of and taken, also while the process ends. Nothing else in the module does
// either.
#pragma once

#include <nanobind/nanobind.h>

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
  PyGILState_STATE state_{};
};

/// @throws CancelledError that says so.
[[noreturn]] void fail_process_ends();

/// action() with the GIL, for callbacks. @throws CancelledError once the interpreter ends.
template <typename Action>
void with_gil(const Action& action) {
  const Locked locked;
  if (!locked) fail_process_ends();
  action();
}

}  // namespace thalia::python
