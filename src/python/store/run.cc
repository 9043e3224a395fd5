// A run for those who read it, and what checks and restores it.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "python/buffers.h"
#include "python/store/store.h"
#include "thalia/store/repair.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

Run open_run(const Path& folder) {
  const Unlocked unlocked;
  return Run::open(folder);
}

Run make_run(const Path& folder, const std::string& config_json, const std::string& format) {
  const RunConfig config = parse_run_config(config_json, ConfigFormat::json);
  const auto kind = chosen<ConfigFormat>(
      "format", format, {{"toml", ConfigFormat::toml}, {"json", ConfigFormat::json}});
  const Unlocked unlocked;
  return create_run(folder, config, kind);
}

std::string run_config_json(const Run& run) {
  return run_config_text(run.config(), ConfigFormat::json);
}

// Bytes of a checkpoint, which they keep mapped.
Payload payload_of(const LoadedBytes& checkpoint) {
  return {checkpoint.bytes.bytes, checkpoint.bytes.owner};
}

StoreReport check_run(const Run& run, const std::optional<std::string>& phase, bool quick,
                      unsigned threads, ProgressCallback progress) {
  StoreCheckOptions options{
      .phase = phase.value_or(""),
      .quick = quick,
      .work = {.threads = threads, .progress = progress_of(std::move(progress))}};
  return interruptible([&](const std::stop_token& stop) {
    options.work.cancel = stop;
    return verify_run(run, options);
  });
}

// And the warnings.
TupleWith<RestoreResult, ListOf<std::string>> restore_run(
    const Run& run, const std::string& phase, const Path& target, std::optional<std::uint64_t> step,
    const std::optional<std::string>& gate, const std::string& check, const Members& save) {
  std::vector<std::string> warnings;
  RestoreOptions options{
      .load = load_options(step, check), .gate = gate, .output = save_options(save).output};
  options.load.on_warning = [&](const std::string& sentence) { warnings.push_back(sentence); };
  const RestoreResult result = interruptible([&](const std::stop_token& stop) {
    options.load.read.work.cancel = stop;
    return restore(run, phase, target, options);
  });
  return nb::make_tuple(result, text_list(warnings));
}

template <typename Call>
auto unlocked(Call call) {
  const Unlocked without;
  return call();
}

void bind_loading(nb::class_<Run>& run) {
  run.def(
         "load",
         [](const Run& self, const std::string& phase, std::optional<std::uint64_t> step,
            const std::string& check) {
           return loaded_file(load_options(step, check), [&](const LoadOptions& options) {
             return self.load(phase, options);
           });
         },
         nb::arg("phase"), nb::arg("step").none(), nb::arg("check"))
      .def(
          "load_bytes",
          [](const Run& self, const std::string& phase, std::optional<std::uint64_t> step) {
            return loaded<Payload>(
                load_options(step, "digest"),
                [&](const LoadOptions& options) { return self.load_bytes(phase, options); },
                payload_of);
          },
          nb::arg("phase"), nb::arg("step").none())
      .def(
          "load_gate",
          [](const Run& self, const std::string& name) {
            return loaded_file(
                {}, [&](const LoadOptions& options) { return self.load_gate(name, options); });
          },
          nb::arg("name"))
      .def(
          "load_gate_bytes",
          [](const Run& self, const std::string& name) {
            return loaded<Payload>(
                {}, [&](const LoadOptions& options) { return self.load_gate_bytes(name, options); },
                payload_of);
          },
          nb::arg("name"))
      .def("restore", restore_run, nb::arg("phase"), nb::arg("target"), nb::arg("step").none(),
           nb::arg("gate").none(), nb::arg("check"), nb::arg("save"));
}

}  // namespace

void bind_run(nb::module_& module) {
  nb::class_<Run> run(module, "Run");
  run.def_static("open", open_run, nb::arg("folder"))
      .def_static("create", make_run, nb::arg("folder"), nb::arg("config_json"), nb::arg("format"))
      .def_prop_ro("folder", &Run::folder)
      .def_prop_ro("config_json", run_config_json)
      .def("path_of", [](const Run& self, const std::string& phase,
                         const std::string& file) { return self.phase_folder(phase) / file; })
      .def("gate_path",
           [](const Run& self, const std::string& name) { return self.gate_path(name); })
      .def("is_due", [](const Run& self, const std::string& phase,
                        std::uint64_t step) { return self.config().phase(phase).is_due(step); })
      // "list" would hide the type of that name in what follows in the stub.
      .def("entries",
           [](const Run& self, const std::string& phase) {
             return unlocked([&] { return self.list(phase); });
           })
      .def("latest",
           [](const Run& self, const std::string& phase) {
             return unlocked([&] { return self.latest(phase); });
           })
      .def("best",
           [](const Run& self, const std::string& phase) {
             return unlocked([&] { return self.best(phase); });
           })
      .def("current_phase",
           [](const Run& self) { return unlocked([&] { return self.current_phase(); }); })
      .def("gates", [](const Run& self) { return unlocked([&] { return self.gates(); }); })
      .def("verify", check_run, nb::arg("phase").none(), nb::arg("quick"), nb::arg("threads"),
           nb::arg("progress").none());
  bind_loading(run);
  module.def("find_runs",
             [](const Path& folder) { return unlocked([&] { return find_runs(folder); }); });
  module.def("run_id", run_id, nb::arg("started_at"), nb::arg("master_seed"));
  module.def("is_run_id", [](const std::string& text) { return is_run_id(text); });
  module.def("hydra_config_json",
             [] { return run_config_text(hydra_config(), ConfigFormat::json); });
}

}  // namespace thalia::python
