// Calls that take long: without the GIL, and ended by a signal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>

#include <nanobind/nanobind.h>

#include "base/stop_question.h"
#include "python/gil.h"
#include "thalia/options.h"

namespace thalia::python {

/// How long a signal may wait.
constexpr std::chrono::milliseconds kBetweenSignals{50};

/// Calls, with the GIL. True: it raised, and Python knows with what.
template <typename Call>
bool has_raised(const Call& call) {
  try {
    call();
    return false;
  } catch (nanobind::python_error& error) {
    error.restore();
    return true;
  }
}

/// Runs action(stop token) on a thread of its own, without the GIL, and looks for signals
/// meanwhile: a handler that raises, as that of Ctrl-C does, stops the action, and its exception is
/// thrown once that has ended. So does the end of the process. The GIL is held by the caller.
/// @param meanwhile called between the looks, with the GIL; what it raises ends the action, too.
template <typename Action, typename Meanwhile>
auto interruptible(Action action, Meanwhile meanwhile) {
  using Result = std::invoke_result_t<Action, std::stop_token>;
  std::stop_source stop;
  std::packaged_task<Result()> task([&] { return action(stop.get_token()); });
  std::future<Result> result = task.get_future();
  bool raised = false;
  {
    const Unlocked unlocked;
    const std::jthread thread(std::move(task));
    while (!raised && result.wait_for(kBetweenSignals) != std::future_status::ready) {
      const Locked locked;
      raised = locked && (PyErr_CheckSignals() != 0 || has_raised(meanwhile));
      if (raised || !locked) stop.request_stop();
    }
    if (raised) result.wait();
  }
  if (raised) throw nanobind::python_error();
  return result.get();
}

template <typename Action>
auto interruptible(Action action) {
  return interruptible(std::move(action), [] {});
}

/// The same of work that is soon over, as all of a small file is: on the caller's own thread, which
/// looks for signals itself where the work may end. On a machine with other work, another thread
/// waits longer for its turn than this takes.
template <typename Action>
auto interruptible_here(Action action) {
  using Clock = std::chrono::steady_clock;
  std::stop_source stop;
  bool raised = false;
  auto last = Clock::now();
  const std::function<bool()> wanted = [&] {
    if (const auto now = Clock::now(); now - last >= kBetweenSignals) {
      last = now;
      const Locked locked;
      raised = raised || (locked && PyErr_CheckSignals() != 0);
      if (raised || !locked) stop.request_stop();
    }
    return stop.stop_requested();
  };
  try {
    auto result = [&] {
      const Unlocked unlocked;
      const StopQuestion question(wanted);
      return action(stop.get_token());
    }();
    if (!raised) return result;
  } catch (...) {
    if (!raised) throw;
  }
  throw nanobind::python_error();
}

/// Bytes of a file that is small enough for it.
constexpr std::uint64_t kSoonOver = 8 << 20;

/// Kept by who may not have the GIL: the last copy takes it to let go.
inline std::shared_ptr<nanobind::object> held_object(nanobind::object object) {
  return {new nanobind::object(std::move(object)), [](nanobind::object* held) {
            // Once the interpreter ends nobody may let go.
            if (const Locked locked; locked) delete held;
          }};
}

// What is called back, as the stub of the module has it.
class ReadyCallback : public nanobind::object {
 public:
  using nanobind::object::object;
  // NOLINTNEXTLINE(readability-identifier-naming): nanobind's name
  static constexpr auto Name = nanobind::detail::const_name("collections.abc.Callable[[], object]");
};
class ProgressCallback : public nanobind::object {
 public:
  using nanobind::object::object;
  // NOLINTNEXTLINE(readability-identifier-naming): nanobind's name
  static constexpr auto Name =
      nanobind::detail::const_name("collections.abc.Callable[[int, int], object]");
};

/// Calls callback() with the GIL. None is no callback.
inline std::function<void()> ready_of(nanobind::object callback) {
  if (callback.is_none()) return {};
  return [held = held_object(std::move(callback))] { with_gil([&] { (*held)(); }); };
}

/// Calls callback(done, total) with the GIL. What it raises ends the work with that exception. None
/// is no callback.
inline Progress progress_of(nanobind::object callback) {
  if (callback.is_none()) return {};
  return [held = held_object(std::move(callback))](std::uint64_t done, std::uint64_t total) {
    with_gil([&] { (*held)(done, total); });
  };
}

}  // namespace thalia::python
