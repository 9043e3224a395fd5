// An AsyncSaver as Python holds it, for whatever begins saves with it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "base/inside.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/writer.h"
#include "thalia/async_save.h"
#include "thalia/error.h"

namespace thalia::python {

// Used with the GIL held. Who lets go of the GIL keeps a copy of the pointer: another thread may
// close this one meanwhile.
struct Saver {
  struct Save {
    std::shared_ptr<detail::SaveControl> save;
    std::vector<HeldBuffer> held;  ///< what it reads, if it copied nothing
  };
  std::vector<Save> saves{};
  std::shared_ptr<AsyncSaver> saver;  ///< none once it was closed

  explicit Saver(const AsyncSaveOptions& options)
      : saver(make_ended_unlocked<AsyncSaver>(options)) {}
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  ~Saver() { close(); }

  std::shared_ptr<AsyncSaver> open() const {
    if (saver) return saver;
    throw UsageError(ErrorCode::wrong_state, "the saver was closed, as the process ends");
  }
  // For what may wait: interruptible() does that on another thread than the caller's.
  std::shared_ptr<AsyncSaver> get() const {
    open()->check_caller();
    return saver;
  }

  // Waits for its saves, whose callbacks need the GIL, and ends its thread.
  void close() { const std::shared_ptr<AsyncSaver> gone = std::exchange(saver, nullptr); }

  // Lets go of saves that have ended. To let go of a buffer may run Python, and that may
  // begin a save: they leave the list first.
  void let_go() {
    const auto ended = std::partition(saves.begin(), saves.end(),
                                      [](const Save& save) { return !save.save->done(); });
    const std::vector<Save> gone(std::make_move_iterator(ended),
                                 std::make_move_iterator(saves.end()));
    saves.erase(ended, saves.end());
  }
};

/// Begins a save of a writer by begin(saver, writer, snapshot, ready), which may wait for other
/// saves, and returns a handle of it. The writer is taken over, unless the save was skipped.
/// @param ready as of ready_of().
template <typename Begin>
auto begin_save(Saver& self, PyWriter& writer, const std::string& snapshot,
                const nanobind::object& ready, Begin begin) {
  const std::shared_ptr<AsyncSaver> saver = self.get();
  const auto use = writer.use();
  Writer& declared = use->get();
  const auto kind = chosen<Snapshot>("snapshot", snapshot,
                                     {{"copy", Snapshot::copy}, {"borrowed", Snapshot::borrowed}});
  std::function<void()> wait_until_ready = ready_of(ready);
  using Handle = std::invoke_result_t<Begin, AsyncSaver&, Writer&, Snapshot, std::function<void()>>;
  std::optional<Handle> begun;
  interruptible([&](const std::stop_token& stop) {
    const std::stop_callback forward(stop, [&] { use->stop.request_stop(); });
    begun.emplace(begin(*saver, declared, kind, std::move(wait_until_ready)));
  });
  if (begun->skipped()) return *std::move(begun);
  use->writer.reset();
  std::vector<HeldBuffer> held = std::exchange(use->held, {});
  if (kind == Snapshot::copy) held.clear();
  self.saves.push_back({detail::Inside::outcome(*begun).pointer(), std::move(held)});
  self.let_go();
  return *std::move(begun);
}

inline constexpr std::chrono::nanoseconds kWaitStep = std::chrono::milliseconds(50);

/// Waits for a handle in steps, so that signals are seen; one that raises ends the waiting, and not
/// the save. @param timeout in seconds. @return false if it is not done within that time.
template <typename Handle>
bool wait_in_steps(const Handle& handle, std::optional<double> timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr double kLongest = 1e9;  // seconds
  const Clock::time_point end =
      Clock::now() + std::chrono::nanoseconds(static_cast<std::int64_t>(
                         std::clamp(timeout.value_or(kLongest), 0.0, kLongest) * 1e9));
  while (true) {
    bool done;
    {
      const Unlocked unlocked;
      done =
          handle.wait_for(std::clamp<std::chrono::nanoseconds>(end - Clock::now(), {}, kWaitStep));
    }
    if (done) return true;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    if (timeout && Clock::now() >= end) return false;
  }
}

/// Binds a handle of a save in the background. @param shown makes what wait() returns of the
/// result.
template <typename Result, typename Shown>
void bind_handle(nanobind::module_& module, const char* name, Shown shown) {
  namespace nb = nanobind;
  using Handle = SaveHandle<Result>;
  nb::class_<Handle>(module, name)
      .def(
          "wait",
          [shown](const Handle& handle, std::optional<double> timeout)
              -> std::optional<std::remove_cvref_t<std::invoke_result_t<Shown, Result>>> {
            if (!wait_in_steps(handle, timeout)) return std::nullopt;
            return shown(handle.wait());
          },
          nb::arg("timeout").none())
      .def_prop_ro("done", [](const Handle& handle) { return handle.done(); })
      .def_prop_ro("skipped", [](const Handle& handle) { return handle.skipped(); })
      .def_prop_ro("progress",
                   [](const Handle& handle) {
                     const SaveProgress progress = handle.progress();
                     return std::pair(progress.done, progress.total);
                   })
      .def_prop_ro("error",
                   [](const Handle& handle) -> ObjectLike<MaybeError> {
                     const std::exception_ptr error = handle.error();
                     return error ? exception_of(error) : nb::object(nb::none());
                   })
      .def("cancel", [](const Handle& handle) { handle.cancel(); });
}

}  // namespace thalia::python
