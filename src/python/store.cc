// The folder of a training run: its checkpoints, and the saves into it.
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/calls.h"
#include "python/errors.h"
#include "python/file.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"
#include "python/saver.h"
#include "python/writer.h"
#include "thalia/error.h"
#include "thalia/store/run.h"
#include "thalia/store/writer.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

// Told by threads that do not have the GIL, and taken by those that do.
class StoreWarnings {
 public:
  void add(const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    sentences_.push_back(sentence);
  }
  std::vector<std::string> take() {
    if (!mutex_.process().is_this()) return {};
    const std::lock_guard lock(mutex_);
    return std::exchange(sentences_, {});
  }

 private:
  io::ProcessMutex mutex_{"the writer of the run"};
  std::vector<std::string> sentences_;
};

// Used with the GIL held, as Saver is.
struct PyRunWriter {
  std::shared_ptr<StoreWarnings> warnings = std::make_shared<StoreWarnings>();
  std::shared_ptr<RunWriter> writer;  ///< none once it was closed
  bool is_forsaken = false;  ///< it is the one of the process that this one was forked from

  PyRunWriter(const Path& folder, bool wait, const SaveOptions& save,
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
  PyRunWriter(const PyRunWriter&) = delete;
  PyRunWriter& operator=(const PyRunWriter&) = delete;
  ~PyRunWriter() { close(); }

  std::shared_ptr<RunWriter> get() const {
    if (writer) return writer;
    throw UsageError(ErrorCode::wrong_state,
                     is_forsaken ? "the run was opened by the process that this one was forked "
                                   "from: open it here"
                                 : "the run was closed");
  }

  // In a forked process its thread does not exist, and its saves are the other's: it is kept for
  // good.
  void forsake() {
    is_forsaken = writer != nullptr;
    // NOLINTNEXTLINE(cppcoreguidelines-owning-memory)
    if (writer) new std::shared_ptr<RunWriter>(std::exchange(writer, nullptr));
  }

  // Waits for its saves.
  void close() { const std::shared_ptr<RunWriter> last = std::exchange(writer, nullptr); }
};

// A full file has no base.
std::optional<std::string> base_of(const std::string& base) {
  if (base.empty()) return std::nullopt;
  return base;
}

// What prune() decided, each with the entry that it is about.
struct Decided {
  CheckpointEntry entry{};
  RetentionDecision::Fate fate = RetentionDecision::Fate::keep;
  std::string reason{};
};
struct Pruned {
  std::vector<Decided> decisions{};
  std::vector<std::string> removed{};
  std::uint64_t freed_bytes = 0;
};

LoadOptions load_options(std::optional<std::uint64_t> step, const std::string& check) {
  LoadOptions options;
  options.step = step;
  options.check = chosen<LoadCheck>(
      "check", check, {{"digest", LoadCheck::digest}, {"on_touch", LoadCheck::on_touch}});
  return options;
}

// load(options) on a thread of its own. The entry, its path, the open file, and what was passed
// over: pairs of a path and a reason.
template <typename Load>
TupleWith<CheckpointEntry, Path, File, ListOf<TupleWith<Path, std::string>>, ListOf<std::string>>
loaded(LoadOptions options, Load load) {
  std::vector<std::string> warnings;
  options.on_warning = [&](const std::string& sentence) { warnings.push_back(sentence); };
  const LoadedCheckpoint checkpoint = interruptible([&](const std::stop_token& stop) {
    options.read.work.cancel = stop;
    LoadedCheckpoint found = load(options);
    return found;
  });
  File file{.reader = checkpoint.chain.reader()};
  if (checkpoint.chain.depth() != 0)
    file.chain = std::make_shared<const ChainReader>(checkpoint.chain);
  nb::list passed_over;
  for (const LoadAttempt& attempt : checkpoint.attempts)
    if (!attempt.failure.empty())
      passed_over.append(nb::make_tuple(attempt.path, text_object(attempt.failure)));
  return nb::make_tuple(checkpoint.entry, checkpoint.path, std::move(file), passed_over,
                        text_list(warnings));
}

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

SaveHandle<StoredCheckpoint> save_checkpoint_async(const PyRunWriter& self, Saver& saver,
                                                   PyWriter& writer, std::optional<double> metric,
                                                   const std::string& snapshot,
                                                   const ReadyCallback& ready) {
  const std::shared_ptr<RunWriter> run = self.get();
  return begin_save(
      saver, writer, snapshot, ready,
      [&](AsyncSaver& to, Writer& declared, Snapshot kind, std::function<void()> until) {
        return run->commit_async(to, std::move(declared), {.metric = metric}, kind,
                                 std::move(until));
      });
}

Pruned prune_run(const PyRunWriter& self, const std::string& phase, bool dry_run) {
  const std::shared_ptr<RunWriter> run = self.get();
  const StorePruneResult result = interruptible(
      [&](const std::stop_token&) { return run->prune(phase, {.dry_run = dry_run}); });
  Pruned out{.removed = result.removed, .freed_bytes = result.freed_bytes};
  for (const RetentionDecision& decision : result.decisions)
    out.decisions.push_back({result.entries[decision.entry], decision.fate, decision.reason});
  return out;
}

void bind_store_results(nb::module_& module) {
  bind_result<CheckpointEntry>(
      module, "CheckpointEntry", "What a run knows of a checkpoint without opening it.",
      field("phase", &CheckpointEntry::phase), field("step", &CheckpointEntry::step),
      field("file", &CheckpointEntry::file, "Its name in the phase's folder of checkpoints."),
      field("file_bytes", &CheckpointEntry::bytes),
      field("saved_at", &CheckpointEntry::saved_at, "Seconds since 1970."),
      field("metric", &CheckpointEntry::metric, "What it was saved with."),
      field("condition", &CheckpointEntry::condition,
            "The condition of this file: \"whole\" if it is unchanged since it was saved or read, "
            "\"unknown\" if nobody has looked since it was changed."),
      field("base", &CheckpointEntry::base, "The file that a delta is based on.", base_of),
      field("protected_by", &CheckpointEntry::protected_by,
            "Why retention leaves it alone: \"latest\", \"best\", \"gate NAME\"."));
  bind_result<StoredCheckpoint>(
      module, "StoredCheckpoint", "What a save did.", field("entry", &StoredCheckpoint::entry),
      field("path", &StoredCheckpoint::path),
      field("is_best", &StoredCheckpoint::is_best, "It is the best of its phase now."),
      field("removed", &StoredCheckpoint::removed, "Files that retention did not keep."),
      field("seconds", &StoredCheckpoint::seconds),
      field("sync_seconds", &StoredCheckpoint::sync_seconds,
            "The part of `seconds` spent waiting for the disk."));
  bind_result<Decided>(
      module, "RetentionDecision", "What becomes of a checkpoint.", field("entry", &Decided::entry),
      field("fate", &Decided::fate, "\"squash\": a delta that becomes a full file, and stays."),
      field("reason", &Decided::reason));
  bind_result<Pruned>(module, "PruneResult", "What prune() did, or would do.",
                      field("decisions", &Pruned::decisions), field("removed", &Pruned::removed),
                      field("freed_bytes", &Pruned::freed_bytes));
}

void bind_run(nb::module_& module) {
  nb::class_<Run>(module, "Run")
      .def_static(
          "open",
          [](const Path& folder) {
            const Unlocked unlocked;
            return Run::open(folder);
          },
          nb::arg("folder"))
      .def_static(
          "create",
          [](const Path& folder, const std::string& config_json) {
            const RunConfig config = parse_run_config(config_json, ConfigFormat::json);
            const Unlocked unlocked;
            return create_run(folder, config);
          },
          nb::arg("folder"), nb::arg("config_json"))
      .def_prop_ro("folder", &Run::folder)
      .def_prop_ro("config_json",
                   [](const Run& run) { return run_config_text(run.config(), ConfigFormat::json); })
      .def("path_of", [](const Run& run, const std::string& phase,
                         const std::string& file) { return run.phase_folder(phase) / file; })
      // "list" would hide the type of that name in what follows in the stub.
      .def("entries", [](const Run& run, const std::string& phase) { return run.list(phase); })
      .def("latest", [](const Run& run, const std::string& phase) { return run.latest(phase); })
      .def("best", [](const Run& run, const std::string& phase) { return run.best(phase); })
      .def(
          "load",
          [](const Run& run, const std::string& phase, std::optional<std::uint64_t> step,
             const std::string& check) {
            return loaded(load_options(step, check),
                          [&](const LoadOptions& options) { return run.load(phase, options); });
          },
          nb::arg("phase"), nb::arg("step").none(), nb::arg("check"));
}

}  // namespace

void bind_store(nb::module_& module) {
  bind_store_results(module);
  bind_run(module);
  bind_handle<StoredCheckpoint>(module, "StoreHandle", std::identity());
  nb::class_<PyRunWriter>(module, "RunWriter")
      .def(
          "__init__",
          [](PyRunWriter* self, const Path& folder, bool wait, const Members& options,
             const std::optional<std::string>& config_json) {
            new (self) PyRunWriter(folder, wait, save_options(options), config_json);
          },
          nb::arg("folder"), nb::arg("wait"), nb::arg("options"), nb::arg("config_json").none())
      .def_prop_ro("run", [](const PyRunWriter& self) { return self.get()->run(); })
      .def_prop_ro("is_open", [](const PyRunWriter& self) { return self.writer != nullptr; })
      .def(
          "new_checkpoint",
          [](const PyRunWriter& self, const std::string& phase, std::uint64_t step,
             const Members& options, bool replace) {
            const std::shared_ptr<RunWriter> run = self.get();
            return std::make_unique<PyWriter>(
                "the writer", save_options(options), [&](const SaveOptions& own) {
                  return run->new_checkpoint(phase, step, own, replace);
                });
          },
          nb::arg("phase"), nb::arg("step"), nb::arg("options"), nb::arg("replace"))
      .def("commit", save_checkpoint, nb::arg("writer"), nb::arg("metric").none())
      .def("commit_async", save_checkpoint_async, nb::arg("saver"), nb::arg("writer"),
           nb::arg("metric").none(), nb::arg("snapshot"), nb::arg("ready").none())
      .def(
          "resume",
          [](const PyRunWriter& self, const std::string& phase, std::optional<std::uint64_t> step) {
            const std::shared_ptr<RunWriter> run = self.get();
            return loaded(load_options(step, "digest"),
                          [&](const LoadOptions& options) { return run->resume(phase, options); });
          },
          nb::arg("phase"), nb::arg("step").none())
      .def("prune", prune_run, nb::arg("phase"), nb::arg("dry_run"))
      .def("take_warnings",
           [](const PyRunWriter& self) { return text_list(self.warnings->take()); })
      .def("forsake", &PyRunWriter::forsake)
      .def("close", &PyRunWriter::close);
}

}  // namespace thalia::python
