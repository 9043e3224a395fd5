// The writer of a run as Python holds it, and what several files of the store's binding do alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "python/calls.h"
#include "python/file.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"
#include "thalia/error.h"
#include "thalia/store/pool.h"
#include "thalia/store/run.h"
#include "thalia/store/writer.h"

namespace thalia::python {

/// Told by threads that do not have the GIL, and taken by those that do.
class StoreWarnings {
 public:
  /// @param what they are of; stays.
  explicit StoreWarnings(std::string_view what = "the writer of the run") : mutex_(what) {}
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
  io::ProcessMutex mutex_;
  std::vector<std::string> sentences_;
};

/// Used with the GIL held, as Saver is.
struct PyRunWriter {
  std::shared_ptr<StoreWarnings> warnings = std::make_shared<StoreWarnings>();
  std::shared_ptr<RunWriter> writer;  ///< none once it was closed
  std::shared_ptr<Pool> pool{};       ///< of the writer, once it was asked for
  bool is_forsaken = false;  ///< it is the one of the process that this one was forked from

  PyRunWriter(const std::filesystem::path& folder, bool wait, const SaveOptions& save,
              const std::optional<std::string>& config_json);
  PyRunWriter(const PyRunWriter&) = delete;
  PyRunWriter& operator=(const PyRunWriter&) = delete;
  ~PyRunWriter() { close(); }

  /// @throws UsageError (wrong_state) once it was closed, and in a forked child.
  std::shared_ptr<RunWriter> get() const;
  /// In a forked process its thread does not exist, and its saves are the other's: it is kept for
  /// good.
  void forsake();
  /// Waits for its saves.
  void close() {
    pool.reset();
    const std::shared_ptr<RunWriter> last = std::exchange(writer, nullptr);
  }
};

LoadOptions load_options(std::optional<std::uint64_t> step, const std::string& check);

/// The open file of a checkpoint.
File file_of(const ChainReader& chain);

/// Pairs of the path and the reason of each checkpoint that was passed over.
using PassedOver = ListOf<TupleWith<std::filesystem::path, std::string>>;
PassedOver passed_over(const std::vector<LoadAttempt>& attempts);

/// load(options) on a thread of its own. The entry, its path, what shown(checkpoint) makes of it,
/// what was passed over, and warnings.
template <typename Shown, typename Load, typename Show>
TupleWith<CheckpointEntry, std::filesystem::path, Shown, PassedOver, ListOf<std::string>> loaded(
    LoadOptions options, Load load, Show shown) {
  std::vector<std::string> warnings;
  options.on_warning = [&](const std::string& sentence) { warnings.push_back(sentence); };
  const auto checkpoint = interruptible([&](const std::stop_token& stop) {
    options.read.work.cancel = stop;
    return load(options);
  });
  return nanobind::make_tuple(checkpoint.entry, checkpoint.path, shown(checkpoint),
                              passed_over(checkpoint.attempts), text_list(warnings));
}

/// The same of a .thalia checkpoint.
template <typename Load>
auto loaded_file(LoadOptions options, Load load) {
  return loaded<File>(std::move(options), load,
                      [](const LoadedCheckpoint& checkpoint) { return file_of(checkpoint.chain); });
}

using RunWriterClass = nanobind::class_<PyRunWriter>;
void bind_follow(nanobind::module_& module);
void bind_publisher(nanobind::module_& module);
void bind_store_results(nanobind::module_& module);
void bind_run(nanobind::module_& module);
void bind_store_states(RunWriterClass& writer);
void bind_keeping(nanobind::module_& module, RunWriterClass& writer);
void bind_pool(nanobind::module_& module, RunWriterClass& writer);
void bind_phases(nanobind::module_& module, RunWriterClass& writer);

}  // namespace thalia::python
