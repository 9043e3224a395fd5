// What a run is given to save besides what a Writer has declared: brains, files, and bytes that are
// not looked into.
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "python/brain/brain.h"
#include "python/buffers.h"
#include "python/store/store.h"
#include "thalia/storage.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;
using Keys = std::vector<std::string>;

StoredCheckpoint save_brain_state(const PyRunWriter& self, const std::string& phase,
                                  std::uint64_t step, PyBrain& brain, BrainSaveOptions options,
                                  std::optional<double> metric, bool replace) {
  const std::shared_ptr<RunWriter> run = self.get();
  const auto use = brain.use();
  return interruptible([&](const std::stop_token& stop) {
    options.save.work.cancel = stop;
    return run->save(phase, step, use->state, {.metric = metric, .replace = replace}, options);
  });
}

SaveHandle<StoredCheckpoint> save_brain_state_async(const PyRunWriter& self, Saver& saver,
                                                    const std::string& phase, std::uint64_t step,
                                                    PyBrain& brain, BrainSaveOptions options,
                                                    std::optional<double> metric, bool replace,
                                                    const std::string& snapshot) {
  const std::shared_ptr<RunWriter> run = self.get();
  const auto kind = chosen<Snapshot>("snapshot", snapshot,
                                     {{"copy", Snapshot::copy}, {"borrowed", Snapshot::borrowed}});
  return begin_brain(
      brain, saver, kind, [&](AsyncSaver& to, const BrainState& state, std::stop_token cancel) {
        options.save.work.cancel = std::move(cancel);
        return run->save_async(to, phase, step, state, {.metric = metric, .replace = replace},
                               options, kind);
      });
}

SaveInfo save_info(std::optional<double> metric, bool replace, Keys keys) {
  return {.metric = metric, .replace = replace, .keys = std::move(keys)};
}

StoredCheckpoint save_bytes(const PyRunWriter& self, const std::string& phase, std::uint64_t step,
                            nb::handle data, std::optional<double> metric, bool replace,
                            Keys keys) {
  const std::shared_ptr<RunWriter> run = self.get();
  const HeldBuffer held(data, HeldBuffer::Use::read);
  const SaveInfo info = save_info(metric, replace, std::move(keys));
  return interruptible(
      [&](const std::stop_token&) { return run->save_bytes(phase, step, held.bytes(), info); });
}

// The next piece of an iterator, null at its end. Any thread may let go of it, without the GIL.
std::shared_ptr<HeldBuffer> next_piece(nb::handle pieces) {
  std::shared_ptr<HeldBuffer> piece;
  with_gil([&] {
    const nb::object next = nb::steal(PyIter_Next(pieces.ptr()));
    if (!next.is_valid()) {
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      return;
    }
    piece = {new HeldBuffer(next, HeldBuffer::Use::read), [](HeldBuffer* held) {
               // Once the interpreter ends nobody may let go.
               if (const Locked locked; locked) delete held;
             }};
  });
  return piece;
}

StoredCheckpoint save_pieces(const PyRunWriter& self, const std::string& phase, std::uint64_t step,
                             const nb::object& pieces, std::optional<double> metric, bool replace,
                             Keys keys) {
  const std::shared_ptr<RunWriter> run = self.get();
  const nb::object iterator = nb::steal(PyObject_GetIter(pieces.ptr()));
  if (!iterator.is_valid()) throw nb::python_error();
  const SaveInfo info = save_info(metric, replace, std::move(keys));
  return interruptible([&](const std::stop_token& stop) {
    const ByteProducer produce = [&](const ByteSink& sink) {
      while (const std::shared_ptr<HeldBuffer> piece = next_piece(iterator)) {
        if (stop.stop_requested()) throw CancelledError(ErrorCode::cancelled, "the save was ended");
        sink(piece->bytes());
      }
    };
    return run->save_stream(phase, step, produce, info);
  });
}

StoredCheckpoint save_file(const PyRunWriter& self, const std::string& phase, std::uint64_t step,
                           const Path& file, std::optional<double> metric, bool replace,
                           Keys keys) {
  const std::shared_ptr<RunWriter> run = self.get();
  const SaveInfo info = save_info(metric, replace, std::move(keys));
  return interruptible(
      [&](const std::stop_token&) { return run->save_file(phase, step, file, info); });
}

}  // namespace

void bind_store_states(RunWriterClass& writer) {
  writer
      .def("save_brain", save_brain_state, nb::arg("phase"), nb::arg("step"), nb::arg("brain"),
           nb::arg("options"), nb::arg("metric").none(), nb::arg("replace"))
      .def("save_brain_async", save_brain_state_async, nb::arg("saver"), nb::arg("phase"),
           nb::arg("step"), nb::arg("brain"), nb::arg("options"), nb::arg("metric").none(),
           nb::arg("replace"), nb::arg("snapshot"))
      .def("save_bytes", save_bytes, nb::arg("phase"), nb::arg("step"), nb::arg("data"),
           nb::arg("metric").none(), nb::arg("replace"), nb::arg("keys"))
      .def("save_pieces", save_pieces, nb::arg("phase"), nb::arg("step"), nb::arg("pieces"),
           nb::arg("metric").none(), nb::arg("replace"), nb::arg("keys"))
      .def("save_file", save_file, nb::arg("phase"), nb::arg("step"), nb::arg("file"),
           nb::arg("metric").none(), nb::arg("replace"), nb::arg("keys"));
}

}  // namespace thalia::python
