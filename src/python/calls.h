// Calls that take long: without the GIL, and ended by a signal.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>

#include <nanobind/nanobind.h>

#include "python/gil.h"
#include "thalia/options.h"

namespace thalia::python {

/// Runs action(stop token) on a thread of its own, without the GIL, and looks for signals
/// meanwhile: a handler that raises, as that of Ctrl-C does, stops the action, and its exception is
/// thrown once that has ended. So does the end of the process. The GIL is held by the caller.
template <typename Action>
auto interruptible(Action action) {
  using Result = std::invoke_result_t<Action, std::stop_token>;
  std::stop_source stop;
  std::packaged_task<Result()> task([&] { return action(stop.get_token()); });
  std::future<Result> result = task.get_future();
  bool raised = false;
  {
    const Unlocked unlocked;
    const std::jthread thread(std::move(task));
    while (!raised && result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
      const Locked locked;
      raised = locked && PyErr_CheckSignals() != 0;
      if (raised || !locked) stop.request_stop();
    }
    if (raised) result.wait();
  }
  if (raised) throw nanobind::python_error();
  return result.get();
}

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
