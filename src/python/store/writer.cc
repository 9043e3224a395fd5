// The folder of a training run: its checkpoints, and the saves into it.
#include "python/store/store.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/saver.h"
#include "python/writer.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

StoredCheckpoint save_checkpoint(const PyRunWriter& self, PyWriter& writer,
                                 std::optional<double> metric) {
  const std::shared_ptr<RunWriter> run = self.get();
  const auto use = writer.use();
  Writer& declared = use->get();
  StoredCheckpoint stored = interruptible([&](const std::stop_token& stop) {
    const std::stop_callback forward(stop, [&] { use->stop.request_stop(); });
    return run->commit(std::move(declared), {.metric = metric});
  });
  use->let_go();
  return stored;
}

// A delta, where the run's policy says so.
StoredCheckpoint save_as_delta(const PyRunWriter& self, PyWriter& writer,
                               std::optional<double> metric) {
  const std::shared_ptr<RunWriter> run = self.get();
  const auto use = writer.use();
  const Writer& declared = use->get();
  StoredCheckpoint stored = interruptible([&](const std::stop_token& stop) {
    const std::stop_callback forward(stop, [&] { use->stop.request_stop(); });
    return run->save(declared, {.metric = metric});
  });
  use->let_go();
  return stored;
}

/// One way in which a run takes a writer over.
using SaveWriter = SaveHandle<StoredCheckpoint> (RunWriter::*)(AsyncSaver&, Writer&&,
                                                               const SaveInfo&, Snapshot,
                                                               std::function<void()>);

template <SaveWriter kSave>
SaveHandle<StoredCheckpoint> save_checkpoint_async(const PyRunWriter& self, Saver& saver,
                                                   PyWriter& writer, std::optional<double> metric,
                                                   const std::string& snapshot,
                                                   const ReadyCallback& ready) {
  const std::shared_ptr<RunWriter> run = self.get();
  return begin_save(
      saver, writer, snapshot, ready,
      [&](AsyncSaver& to, Writer& declared, Snapshot kind, std::function<void()> until) {
        return ((*run).*kSave)(to, std::move(declared), {.metric = metric}, kind, std::move(until));
      });
}

std::unique_ptr<PyWriter> new_checkpoint(const PyRunWriter& self, const std::string& phase,
                                         std::uint64_t step, const Members& options, bool replace) {
  const std::shared_ptr<RunWriter> run = self.get();
  return std::make_unique<PyWriter>(
      "the writer", save_options(options),
      [&](const SaveOptions& own) { return run->new_checkpoint(phase, step, own, replace); });
}

}  // namespace

PyRunWriter::PyRunWriter(const Path& folder, bool wait, const SaveOptions& save,
                         const std::optional<std::string>& config_json) {
  RunWriterOptions options{.wait = wait, .durability = save.output.durability};
  options.on_warning = [reported = warnings](const std::string& sentence) {
    reported->add(sentence);
  };
  if (config_json) options.config = parse_run_config(*config_json, ConfigFormat::json);
  // Waiting for the lock may take long.
  writer = interruptible([&](const std::stop_token& stop) {
    std::stop_source own;
    const std::stop_callback forward(stop, [&] { own.request_stop(); });
    options.cancel = own.get_token();
    return make_ended_unlocked<RunWriter>(folder, options);
  });
}

std::shared_ptr<RunWriter> PyRunWriter::get() const {
  if (writer) return writer;
  throw UsageError(ErrorCode::wrong_state,
                   is_forsaken ? "the run was opened by the process that this one was forked from: "
                                 "open it here"
                               : "the run was closed");
}

void PyRunWriter::forsake() {
  is_forsaken = writer != nullptr;
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory)
  if (writer) new std::shared_ptr<RunWriter>(std::exchange(writer, nullptr));
}

LoadOptions load_options(std::optional<std::uint64_t> step, const std::string& check) {
  LoadOptions options;
  options.step = step;
  options.check = chosen<LoadCheck>(
      "check", check, {{"digest", LoadCheck::digest}, {"on_touch", LoadCheck::on_touch}});
  return options;
}

File file_of(const ChainReader& chain) {
  File file{.reader = chain.reader()};
  if (chain.depth() != 0) file.chain = std::make_shared<const ChainReader>(chain);
  return file;
}

PassedOver passed_over(const std::vector<LoadAttempt>& attempts) {
  nb::list passed;
  for (const LoadAttempt& attempt : attempts)
    if (!attempt.failure.empty())
      passed.append(nb::make_tuple(attempt.path, text_object(attempt.failure)));
  return passed;
}

void bind_store(nb::module_& module) {
  bind_store_results(module);
  bind_run(module);
  bind_follow(module);
  bind_handle<StoredCheckpoint>(module, "StoreHandle", std::identity());
  RunWriterClass writer(module, "RunWriter");
  writer
      .def(
          "__init__",
          [](PyRunWriter* self, const Path& folder, bool wait, const Members& options,
             const std::optional<std::string>& config_json) {
            new (self) PyRunWriter(folder, wait, save_options(options), config_json);
          },
          nb::arg("folder"), nb::arg("wait"), nb::arg("options"), nb::arg("config_json").none())
      .def_prop_ro("run", [](const PyRunWriter& self) { return self.get()->run(); })
      .def_prop_ro("is_open", [](const PyRunWriter& self) { return self.writer != nullptr; })
      .def("new_checkpoint", new_checkpoint, nb::arg("phase"), nb::arg("step"), nb::arg("options"),
           nb::arg("replace"))
      .def("commit", save_checkpoint, nb::arg("writer"), nb::arg("metric").none())
      .def("save_as_delta", save_as_delta, nb::arg("writer"), nb::arg("metric").none())
      .def("commit_async", save_checkpoint_async<&RunWriter::commit_async>, nb::arg("saver"),
           nb::arg("writer"), nb::arg("metric").none(), nb::arg("snapshot"),
           nb::arg("ready").none())
      .def("save_as_delta_async", save_checkpoint_async<&RunWriter::save_async>, nb::arg("saver"),
           nb::arg("writer"), nb::arg("metric").none(), nb::arg("snapshot"),
           nb::arg("ready").none())
      .def(
          "resume",
          [](const PyRunWriter& self, const std::string& phase, std::optional<std::uint64_t> step) {
            const std::shared_ptr<RunWriter> run = self.get();
            return loaded_file(load_options(step, "digest"), [&](const LoadOptions& options) {
              return run->resume(phase, options);
            });
          },
          nb::arg("phase"), nb::arg("step").none())
      .def("take_warnings",
           [](const PyRunWriter& self) { return text_list(self.warnings->take()); })
      .def("forsake", &PyRunWriter::forsake)
      .def("close", &PyRunWriter::close);
  bind_store_states(writer);
  bind_keeping(module, writer);
  bind_pool(module, writer);
  bind_phases(module, writer);
  bind_publisher(module);
}

}  // namespace thalia::python
