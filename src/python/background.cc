// Saves that run while Python does.
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "python/bindings.h"
#include "python/calls.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/saver.h"
#include "python/writer.h"
#include "thalia/async_save.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

// Once the interpreter ends, a thread that takes the GIL ends the process: so the saver's own has
// to be gone by then.
void close(Saver& self, bool cancel) {
  if (cancel)
    for (const Saver::Save& save : self.saves) save.save->cancel();
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

// In steps, as wait_in_steps().
void wait_all(Saver& self) {
  const std::shared_ptr<AsyncSaver> saver = self.get();
  bool done = false;
  while (!done) {
    {
      const Unlocked unlocked;
      done = saver->wait_all_for(kWaitStep);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  self.let_go();
}

SaveHandle<> save_async(Saver& self, PyWriter& writer, const std::string& snapshot,
                        const ReadyCallback& ready) {
  return begin_save(
      self, writer, snapshot, ready,
      [](AsyncSaver& saver, Writer& declared, Snapshot kind, std::function<void()> until) {
        return saver.save_async(std::move(declared), kind, std::move(until));
      });
}

}  // namespace

void bind_background(nb::module_& module) {
  bind_handle<SaveResult>(module, "SaveHandle", std::identity());
  nb::class_<Saver>(module, "AsyncSaver")
      .def(
          "__init__",
          [](Saver* self, const std::string& when_busy, unsigned max_unfinished,
             std::uint64_t max_snapshot_bytes, unsigned background_threads) {
            new (self) Saver({.when_busy = when_busy_of(when_busy),
                              .max_unfinished = max_unfinished,
                              .max_snapshot_bytes = max_snapshot_bytes,
                              .background_threads = background_threads});
          },
          nb::arg("when_busy"), nb::arg("max_unfinished"), nb::arg("max_snapshot_bytes"),
          nb::arg("background_threads"))
      .def("save_async", save_async, nb::arg("writer"), nb::arg("snapshot"),
           nb::arg("ready").none())
      .def("reserve",
           [](Saver& self, std::uint64_t bytes) {
             const std::shared_ptr<AsyncSaver> saver = self.get();
             interruptible([&](const std::stop_token& stop) { saver->reserve(bytes, 1, stop); });
           })
      .def("wait_all", wait_all)
      .def("close", close)
      .def_prop_ro("snapshot_bytes",
                   [](const Saver& self) { return self.open()->snapshot_bytes(); });
}

}  // namespace thalia::python
