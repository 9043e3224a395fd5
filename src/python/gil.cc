// A door between the library and the interpreter. When the interpreter ends, the thread that ends
// it closes the door, and waits, without the GIL, until nobody is on the way through: what runs for
// other threads hears of it and is stopped, their callbacks are refused, and they stay outside.
// Only daemon threads are left by then. The closing thread itself, and callbacks of what it calls,
// pass as ever: functions that were registered with atexit before this one run after it.
//
// Counters and the flag are in one order for all threads: who counts itself and then finds the door
// open is seen by the one that closes it.
#include "python/gil.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "io/system/process.h"
#include "python/bindings.h"
#include "thalia/detail/once.h"
#include "thalia/error.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

// For what cannot be stopped, as a tensor that is read. Not forever: a callback may wait for the
// very thread that ends the process.
constexpr std::chrono::seconds kPatience{5};

struct Door {
  std::atomic<bool> closed{false};
  std::atomic<int> outside{0};    // threads without the GIL, until they have it again
  std::atomic<int> callbacks{0};  // with the GIL, or waiting for it
  std::atomic<int> closers{0};    // of those outside: the thread that closed the door
  std::thread::id closer;         // set before `closed`
};
Door door;

// Callbacks that this thread is in, of what the closing thread called after it had closed the door.
thread_local int late_callbacks = 0;

// A thread of Python's has the GIL, but where it let go of it. That happens in Unlocked alone.
thread_local bool let_go = false;

bool is_closed_to_this_thread() noexcept {
  return door.closed && std::this_thread::get_id() != door.closer && late_callbacks == 0;
}

bool is_closers() noexcept {
  return door.closed && std::this_thread::get_id() == door.closer;
}

[[noreturn]] void stay_outside() noexcept {
  --door.outside;
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

void close_door() {
  door.closer = std::this_thread::get_id();
  door.closed = true;
  PyThreadState* const state = PyEval_SaveThread();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while ((door.outside > 0 || door.callbacks > 0) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(state);
}

// A forked child has none of the other threads.
void forget_others() {
  door.outside = 0;
  door.callbacks = 0;
}

// Without the GIL, the state of a new thread is made under a lock of the interpreter's, which
// before Python 3.12 a forked child still finds taken, and waits for in os.fork(), for good. So no
// process is forked meanwhile. Under tracemalloc, who makes a state waits for the GIL, which the
// thread that forks has: that one goes on after a while. Python's lock is free then.
#if PY_VERSION_HEX < 0x030C0000
constexpr std::chrono::milliseconds kForksWait{250};
std::timed_mutex making_states;

void make_forks_wait() {
  io::hold_over_forks(making_states, kForksWait);
}

// nullptr: the thread has a state already.
PyThreadState* new_state() noexcept {
  if (PyGILState_GetThisThreadState() != nullptr) return nullptr;
  const std::lock_guard lock(making_states);
  PyThreadState* const made = PyThreadState_New(PyInterpreterState_Main());
  if (made == nullptr) Py_FatalError("no memory for the state of a thread");
  return made;
}

// With the GIL, which the thread lets go of.
void delete_state(PyThreadState* own) noexcept {
  PyThreadState_Clear(own);
  PyThreadState_DeleteCurrent();
}
#else
void make_forks_wait() {}
PyThreadState* new_state() noexcept {
  return nullptr;
}
void delete_state(PyThreadState*) noexcept {}
#endif

}  // namespace

bool has_gil() noexcept {
  return !let_go && PyGILState_GetThisThreadState() != nullptr;
}

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {
  let_go = true;
  ++door.outside;
  if (is_closed_to_this_thread()) stay_outside();
  if (is_closers()) ++door.closers;
}

Unlocked::~Unlocked() {
  if (is_closed_to_this_thread()) stay_outside();
  if (is_closers()) --door.closers;
  PyEval_RestoreThread(state_);
  let_go = false;
  --door.outside;
}

Locked::Locked() noexcept {
  ++door.callbacks;
  // While the closing thread waits for what it called, the interpreter does not end.
  is_late_ = door.closed && door.closers > 0;
  is_in_ = !door.closed || is_late_;
  if (!is_in_) {
    --door.callbacks;
    return;
  }
  if (is_late_) ++late_callbacks;
  own_ = new_state();
  if (own_ != nullptr) {
    PyEval_RestoreThread(own_);
  } else {
    state_ = PyGILState_Ensure();
  }
  had_let_go_ = std::exchange(let_go, false);
}

Locked::~Locked() {
  if (!is_in_) return;
  let_go = had_let_go_;
  if (own_ != nullptr) {
    delete_state(own_);
  } else {
    PyGILState_Release(state_);
  }
  if (is_late_) --late_callbacks;
  --door.callbacks;
}

void fail_process_ends() {
  throw CancelledError(ErrorCode::cancelled, "the process ends");
}

void end_forked_child() noexcept {
  io::end_at_once(
      "thalia_checkpoint: a child that was forked in a callback cannot return from it: end it with "
      "os._exit()\n");
}

// The lock of what is made when it is first touched, also in forked children.
void bind_thread_lock(nb::module_& module) {
  using detail::ThreadLock;
  nb::class_<ThreadLock>(module, "ThreadLock")
      .def(nb::init<>())
      .def("__enter__",
           [](ThreadLock& self) {
             const Unlocked unlocked;
             self.lock();
           })
      .def(
          "__exit__", [](ThreadLock& self, const nb::args&) { self.unlock(); },
          nb::sig("def __exit__(self, *error: object) -> None"));
}

void bind_gil(nb::module_&) {
  make_forks_wait();
  // The last of the package's functions there, as the first that is registered: savers have ended
  // their saves by then.
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(close_door));
  nb::module_::import_("os").attr("register_at_fork")(nb::arg("after_in_child") =
                                                          nb::cpp_function(forget_others));
}

}  // namespace thalia::python
