// Saves that run while Python does.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "python/bindings.h"
#include "python/calls.h"
#include "python/choices.h"
#include "python/errors.h"
#include "python/options.h"
#include "python/text.h"
#include "python/writer.h"
#include "thalia/async_save.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

// Used with the GIL held. Who lets go of the GIL keeps a copy of the pointer: another thread may
// close this one meanwhile.
struct Saver {
  struct Save {
    SaveHandle handle;
    std::vector<HeldBuffer> held;  ///< what it reads, where it copied nothing
  };
  std::vector<Save> saves{};
  std::shared_ptr<AsyncSaver> saver;  ///< none once it was closed

  explicit Saver(const AsyncSaveOptions& options) : saver(std::make_shared<AsyncSaver>(options)) {}
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  ~Saver() { close(); }

  std::shared_ptr<AsyncSaver> get() const {
    if (saver) return saver;
    throw UsageError(ErrorCode::wrong_state, "the saver was closed, as the process ends");
  }

  // Waits for its saves, whose callbacks need the GIL, and ends its thread.
  void close() {
    const nb::gil_scoped_release unlocked;
    saver.reset();
  }

  // Of what has ended. To let go of a buffer may run Python, and that a save: out of the list
  // first.
  void let_go() {
    const auto ended = std::partition(saves.begin(), saves.end(),
                                      [](const Save& save) { return !save.handle.done(); });
    const std::vector<Save> gone(std::make_move_iterator(ended),
                                 std::make_move_iterator(saves.end()));
    saves.erase(ended, saves.end());
  }
};

// Once the interpreter ends, a thread that takes the GIL ends the process: so the saver's own has
// to be gone by then.
void close(Saver& self, bool cancel) {
  if (cancel)
    for (const Saver::Save& save : self.saves) save.handle.cancel();
  self.close();
  self.let_go();
}

WhenBusy when_busy_of(const std::string& name) {
  return chosen<WhenBusy>("when_busy", name,
                          {{"wait", WhenBusy::wait},
                           {"queue", WhenBusy::queue},
                           {"replace", WhenBusy::replace},
                           {"skip", WhenBusy::skip}});
}

Snapshot snapshot_of(const std::string& name) {
  return chosen<Snapshot>("snapshot", name,
                          {{"copy", Snapshot::copy}, {"borrowed", Snapshot::borrowed}});
}

constexpr std::chrono::nanoseconds kStep = std::chrono::milliseconds(50);

// Waits in steps, so that signals are seen. nullopt: not done within the time, in seconds. A signal
// ends the waiting, and not the save.
std::optional<nb::dict> wait(const SaveHandle& handle, std::optional<double> timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr double kLongest = 1e9;  // seconds
  const Clock::time_point end =
      Clock::now() + std::chrono::nanoseconds(static_cast<std::int64_t>(
                         std::clamp(timeout.value_or(kLongest), 0.0, kLongest) * 1e9));
  while (true) {
    bool done;
    {
      const nb::gil_scoped_release unlocked;
      done = handle.wait_for(std::clamp<std::chrono::nanoseconds>(end - Clock::now(), {}, kStep));
    }
    if (done) return result_dict(handle.wait());
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (timeout && Clock::now() >= end) return std::nullopt;
  }
}

// In steps, as wait().
void wait_all(Saver& self) {
  const std::shared_ptr<AsyncSaver> saver = self.get();
  bool done = false;
  while (!done) {
    {
      const nb::gil_scoped_release unlocked;
      done = saver->wait_all_for(kStep);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  self.let_go();
}

nb::object error_of(const SaveHandle& handle) {
  const std::exception_ptr error = handle.error();
  return error ? exception_of(error) : nb::none();
}

// ready(): None for nothing to wait for.
SaveHandle save_async(Saver& self, PyWriter& writer, const std::string& snapshot,
                      const nb::object& ready) {
  const std::shared_ptr<AsyncSaver> saver = self.get();
  Writer& declared = writer.get();
  const Snapshot kind = snapshot_of(snapshot);
  std::function<void()> wait_until_ready = ready_of(ready);
  std::optional<SaveHandle> handle;
  // It may wait for other saves.
  interruptible([&](const std::stop_token& stop) {
    const std::stop_callback forward(stop, [&] { writer.stop.request_stop(); });
    handle.emplace(saver->save_async(std::move(declared), kind, std::move(wait_until_ready)));
  });
  if (handle->skipped()) return *std::move(handle);
  writer.writer.reset();
  std::vector<HeldBuffer> held = std::exchange(writer.held, {});
  if (kind == Snapshot::copy) held.clear();
  self.saves.push_back({*handle, std::move(held)});
  self.let_go();
  return *std::move(handle);
}

}  // namespace

void bind_background(nb::module_& module) {
  nb::class_<SaveHandle>(module, "SaveHandle")
      .def("wait", wait, nb::arg("timeout").none())
      .def_prop_ro("done", &SaveHandle::done)
      .def_prop_ro("skipped", &SaveHandle::skipped)
      .def_prop_ro("progress",
                   [](const SaveHandle& handle) {
                     const SaveProgress progress = handle.progress();
                     return std::pair(progress.done, progress.total);
                   })
      .def_prop_ro("error", error_of)
      .def("cancel", &SaveHandle::cancel);
  nb::class_<Saver>(module, "AsyncSaver")
      .def("__init__",
           [](Saver* self, const std::string& when_busy, unsigned max_unfinished,
              std::uint64_t max_snapshot_bytes, unsigned background_threads) {
             new (self) Saver({.when_busy = when_busy_of(when_busy),
                               .max_unfinished = max_unfinished,
                               .max_snapshot_bytes = max_snapshot_bytes,
                               .background_threads = background_threads});
           })
      .def("save_async", save_async, nb::arg(), nb::arg(), nb::arg().none())
      .def("reserve",
           [](Saver& self, std::uint64_t bytes) {
             const std::shared_ptr<AsyncSaver> saver = self.get();
             interruptible([&](const std::stop_token& stop) { saver->reserve(bytes, 1, stop); });
           })
      .def("wait_all", wait_all)
      .def("close", close)
      .def_prop_ro("snapshot_bytes",
                   [](const Saver& self) { return self.get()->snapshot_bytes(); });
}

}  // namespace thalia::python
