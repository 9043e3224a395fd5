// A publisher of the states of a run, which a RunWriter of Python's holds the lock of.
#include "thalia/store/publish.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "base/busy.h"
#include "python/brain/brain.h"
#include "python/saver.h"
#include "python/store/store.h"
#include "python/writer.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

/// The run's writer is closed, and its lock let go of, no earlier than this ends.
struct HeldPublisher {
  std::shared_ptr<RunWriter> run;
  Publisher publisher;

  HeldPublisher(std::shared_ptr<RunWriter> of, const PublisherOptions& options)
      : run(std::move(of)), publisher(*run, options) {}
};

struct PyPublisher {
  std::shared_ptr<HeldPublisher> held;  ///< none once it was closed
  Busy busy{};

  PyPublisher(const PyRunWriter& run, const std::string& phase, bool hold) {
    std::shared_ptr<RunWriter> of = run.get();
    const Unlocked unlocked;
    held = make_ended_unlocked<HeldPublisher>(std::move(of),
                                              PublisherOptions{.phase = phase, .hold = hold});
  }
  std::shared_ptr<HeldPublisher> get() const {
    if (held) return held;
    throw UsageError(ErrorCode::wrong_state, "the publisher was closed");
  }
  // Waits for what is under way.
  void close() { const std::shared_ptr<HeldPublisher> last = std::exchange(held, nullptr); }
};

// For one call at a time, of a run that is open.
class PublisherUse {
 public:
  PublisherUse(PyPublisher& of, const PyRunWriter& run)
      : call_(of.busy, "the publisher", {}), held_(of.get()) {
    static_cast<void>(run.get());
  }
  Publisher& operator*() const noexcept { return held_->publisher; }
  Publisher* operator->() const noexcept { return &held_->publisher; }

 private:
  Busy::Call call_;
  std::shared_ptr<HeldPublisher> held_;
};

std::unique_ptr<PyWriter> checkpoint_to_publish(PyPublisher& self, const PyRunWriter& run,
                                                std::uint64_t step, const Members& options) {
  const PublisherUse use(self, run);
  return std::make_unique<PyWriter>(
      "the writer", save_options(options),
      [&](const SaveOptions& own) { return use->new_checkpoint(step, own); });
}

// publish(publisher, writer) while both are in use, stopped by a signal. The writer is used up.
template <typename Publish>
auto publish_writer(PyPublisher& self, const PyRunWriter& run, PyWriter& writer,
                    const Publish& publish) {
  const PublisherUse use(self, run);
  const auto declared = writer.use();
  const Writer& state = declared->get();
  auto published = interruptible([&](const std::stop_token& stop) {
    const std::stop_callback forward(stop, [&] { declared->stop.request_stop(); });
    return publish(*use, state);
  });
  declared->let_go();
  return published;
}

PublishedState publish_declared(PyPublisher& self, const PyRunWriter& run, PyWriter& writer,
                                std::optional<double> metric) {
  return publish_writer(self, run, writer, [&](Publisher& to, const Writer& state) {
    return to.publish(state, {.metric = metric});
  });
}

SaveHandle<PublishedState> publish_declared_async(PyPublisher& self, const PyRunWriter& run,
                                                  PyWriter& writer, std::optional<double> metric) {
  return publish_writer(self, run, writer, [&](Publisher& to, const Writer& state) {
    return to.publish_async(state, {.metric = metric});
  });
}

PublishedState publish_brain_state(PyPublisher& self, const PyRunWriter& run, std::uint64_t step,
                                   PyBrain& brain, const BrainSaveOptions& options,
                                   std::optional<double> metric) {
  const PublisherUse use(self, run);
  const auto state = brain.use();
  return interruptible([&](const std::stop_token& stop) {
    PublishOptions own{.metric = metric, .save = options.save};
    own.save.work.cancel = stop;
    return use->publish(step, state->state, own, options);
  });
}

}  // namespace

void bind_publisher(nb::module_& module) {
  bind_result<PublishedState>(
      module, "PublishedState", "A state that followers see.",
      field("entry", &PublishedState::entry), field("path", &PublishedState::path),
      field("is_best", &PublishedState::is_best, "It is the best of its phase now."),
      field("removed", &PublishedState::removed, "Files that retention did not keep."),
      field("tensors", &PublishedState::tensors),
      field("changed", &PublishedState::changed, "Tensors that the file stores something of."),
      field("from_memory", &PublishedState::from_memory,
            "A delta against the copy in memory: no base was read."),
      field("seconds", &PublishedState::seconds),
      field("sync_seconds", &PublishedState::sync_seconds,
            "The part of `seconds` spent waiting for the disk."),
      field("visible_seconds", &PublishedState::visible_seconds,
            "From the call until `latest` led to it; part of `seconds`."));
  bind_handle<PublishedState>(module, "PublishHandle", std::identity());
  nb::class_<PyPublisher>(module, "Publisher")
      .def(nb::init<const PyRunWriter&, const std::string&, bool>(), nb::arg("run"),
           nb::arg("phase"), nb::arg("hold"))
      .def_prop_ro("phase", [](const PyPublisher& self) { return self.get()->publisher.phase(); })
      .def(
          "newest",
          [](PyPublisher& self, const PyRunWriter& run) {
            const PublisherUse use(self, run);
            const Unlocked unlocked;
            return use->newest();
          },
          nb::arg("run"))
      .def("new_checkpoint", checkpoint_to_publish, nb::arg("run"), nb::arg("step"),
           nb::arg("options"))
      .def("publish", publish_declared, nb::arg("run"), nb::arg("writer"), nb::arg("metric").none())
      .def("publish_async", publish_declared_async, nb::arg("run"), nb::arg("writer"),
           nb::arg("metric").none())
      .def("publish_brain", publish_brain_state, nb::arg("run"), nb::arg("step"), nb::arg("brain"),
           nb::arg("options"), nb::arg("metric").none())
      .def("close", &PyPublisher::close);
}

}  // namespace thalia::python
