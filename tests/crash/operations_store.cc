// Saves into a run: of every kind, with what they take out of it. Each begins with a run that a
// process has left in order.
#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "crash/content.h"
#include "crash/operation.h"
#include "crash/store_run.h"
#include "support/files.h"
#include "thalia/files.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace store_saves {
namespace {

constexpr const char* kTrain = "train";

fs::path run_in(const fs::path& folder) {
  return folder / "run";
}

RunWriterOptions quick() {
  return {.durability = Durability::none};
}

void prepare_nothing(const fs::path&) {}

std::string observe(const fs::path& folder) {
  return description_of_run(run_in(folder));
}

void go_on(const fs::path& folder) {
  go_on_with_run(run_in(folder));
}

/// Does `work` between what it attempts and what it has promised then.
void tell(Teller& teller, const std::string& name, const std::function<void()>& work) {
  teller.attempt(name);
  work();
  teller.promise(name);
}

RunConfig with_deltas(DeltaPolicy::Kind kind) {
  RunConfig config = crash_config();
  // What costs too much is to be a delta's tensors: packed, one of so small a state never does.
  config.deltas = {.kind = kind, .full_every = 4, .pack = kind != DeltaPolicy::Kind::cost};
  config.phases[0].retention.keep_last = 2;
  return config;
}

// --- A run --------------------------------------------------------------------

void run_create(const fs::path& folder, Teller& teller) {
  tell(teller, "run", [&] { create_run(run_in(folder), crash_config()); });
  RunWriter writer(run_in(folder));
  tell(teller, "1", [&] { writer.save(kTrain, 1, crash_state(1), {.metric = 0.5}); });
}

void run_in_unsynced_folders(const fs::path& folder, Teller& teller) {
  make_unsynced_folders(folder, {"run", "run/train", "run/train/checkpoints"});
  {
    OutputFile config(run_in(folder) / "run.toml");
    config.write(test::bytes_of(run_config_text(crash_config(), ConfigFormat::toml)));
    teller.attempt("run");
    config.commit();
  }
  RunWriter writer(run_in(folder));
  teller.promise("run");
  tell(teller, "1", [&] { writer.save(kTrain, 1, crash_state(1), {.metric = 0.5}); });
}

// --- Bytes --------------------------------------------------------------------

void prepare_bytes(const fs::path& folder) {
  RunConfig config = crash_config_of_bytes();
  config.phases[0].retention.keep_last = 2;
  create_run(run_in(folder), config);
  RunWriter writer(run_in(folder), quick());
  writer.save_bytes(kTrain, 1, test::bytes_of(crash_bytes(1)), {.metric = 0.5});
}

// The first is the best until the third is: then it goes.
void run_bytes(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  for (const std::uint64_t step : {2, 3, 4})
    tell(teller, std::to_string(step), [&] {
      writer.save_bytes(kTrain, step, test::bytes_of(crash_bytes(step)),
                        {.metric = step == 3 ? 0.25 : 0.75});
    });
}

void run_streamed(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  for (const std::uint64_t step : {2, 3})
    tell(teller, std::to_string(step), [&] {
      const std::string bytes = crash_bytes(step);
      writer.save_stream(kTrain, step,
                         [&](const ByteSink& sink) {
                           for (std::size_t at = 0; at < bytes.size(); at += 5000)
                             sink(test::bytes_of(std::string_view(bytes).substr(at, 5000)));
                         },
                         {.metric = 0.75});
    });
}

// The new bytes have the same size: by that, nobody can tell the two.
void run_replace_bytes(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  std::string bytes = crash_bytes(1);
  std::reverse(bytes.begin(), bytes.end());
  tell(teller, "1 again", [&] {
    writer.save_bytes(kTrain, 1, test::bytes_of(bytes), {.metric = 0.875, .replace = true});
  });
  tell(teller, "2",
       [&] { writer.save_bytes(kTrain, 2, test::bytes_of(crash_bytes(2)), {.metric = 0.75}); });
}

// --- Files --------------------------------------------------------------------

template <typename... Steps>
void prepare_run(const fs::path& folder, const RunConfig& config, Steps... steps) {
  create_run(run_in(folder), config);
  RunWriter writer(run_in(folder), quick());
  for (const std::uint64_t step : {std::uint64_t(steps)...})
    writer.save(kTrain, step, crash_state(step), {.metric = 1.0 / static_cast<double>(step)});
}

void prepare_full(const fs::path& folder) {
  prepare_run(folder, crash_config(), 1);
}

/// The network of a step as a writer of the run's, given to `save` while it is there.
template <typename Save>
auto declared(RunWriter& run, std::uint64_t step, const Work& work, Save save) {
  const test::Sample sample = network(static_cast<unsigned>(step));
  SaveOptions options{.work = work};
  options.work.threads = 1;
  Writer file = run.new_checkpoint(kTrain, step, options);
  test::declare(file, sample);
  return save(std::move(file));
}

void run_writer(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  for (const unsigned step : {2u, 3u})
    tell(teller, std::to_string(step), [&] {
      declared(writer, step, {},
               [&](Writer file) { return writer.commit(std::move(file), {.metric = 0.5}); });
    });
}

template <DeltaPolicy::Kind kKind>
void prepare_deltas(const fs::path& folder) {
  prepare_run(folder, with_deltas(kKind), 1, 2);
}

// Each leaves one that goes, with what it is based on kept as long as it is needed.
void run_deltas(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  for (const std::uint64_t step : {3, 4, 5, 6})
    tell(teller, std::to_string(step), [&] {
      writer.save(kTrain, step, crash_state(step), {.metric = 1.0 / static_cast<double>(step)});
    });
}

// The first delta would be as large as a full file: it is thrown away.
void run_dear_delta(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  for (const std::uint64_t step : {3, 4})
    tell(teller, std::to_string(step),
         [&] { writer.save(kTrain, step, crash_state(step, true), {.metric = 0.5}); });
}

// Replaces a checkpoint that others are based on: they become full files first.
void run_replace_base(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  tell(teller, "2 again",
       [&] { writer.save(kTrain, 2, crash_state(20), {.metric = 0.5, .replace = true}); });
  tell(teller, "4", [&] { writer.save(kTrain, 4, crash_state(4), {.metric = 0.125}); });
}

void prepare_base(const fs::path& folder) {
  RunConfig config = with_deltas(DeltaPolicy::Kind::every);
  config.phases[0].retention.keep_last = 4;
  prepare_run(folder, config, 1, 2, 3);
}

void prepare_declared(const fs::path& folder) {
  create_run(run_in(folder), with_deltas(DeltaPolicy::Kind::every));
  RunWriter run(run_in(folder), quick());
  for (const std::uint64_t step : {1, 2}) {
    declared(run, step, {},
             [&](Writer file) { return run.commit(std::move(file), {.metric = 0.5}); });
  }
}

/// Begins a save of a step in the background, with this work.
using BeginSave = std::function<SaveHandle<StoredCheckpoint>(RunWriter&, AsyncSaver&,
                                                             std::uint64_t step, const Work&)>;

// Each is promised by the thread that has published it, while the other waits.
void run_in_background(const fs::path& folder, Teller& teller, const BeginSave& begin_save) {
  RunWriter writer(run_in(folder));
  std::vector<SaveHandle<StoredCheckpoint>> saves;
  std::mutex mutex;
  std::size_t next = 0;
  bool all_are_saved = true;
  AsyncSaveOptions options{.when_busy = WhenBusy::queue, .background_threads = 1};
  options.on_done = [&](const SaveHandle<>&) {
    const std::lock_guard all_are_begun(mutex);
    const std::size_t done = next++;
    try {
      saves.at(done).wait();
      // What is promised is a state that has all before it.
      if (all_are_saved) teller.promise(std::to_string(done + 3));
    } catch (const std::exception&) {
      // Who waits for it hears of it.
      all_are_saved = false;
    }
  };
  AsyncSaver saver(options);
  // Which base the second takes depends on whether the first is there by then: it never is.
  Work held;
  held.progress = [&](std::uint64_t, std::uint64_t) { const std::lock_guard all_are_begun(mutex); };
  {
    const std::lock_guard begin(mutex);
    for (const std::uint64_t step : {3, 4}) {
      teller.attempt(std::to_string(step));
      saves.push_back(begin_save(writer, saver, step, held));
    }
  }
  for (const SaveHandle<StoredCheckpoint>& save : saves) save.wait();
  saver.wait_all();
}

// A delta of all that there is becomes a full file before it is published.
template <bool kAllChanges>
void run_background(const fs::path& folder, Teller& teller) {
  run_in_background(folder, teller,
                    [](RunWriter& run, AsyncSaver& saver, std::uint64_t step, const Work& work) {
                      BrainSaveOptions options;
                      options.save.work = work;
                      return run.save_async(saver, kTrain, step, crash_state(step, kAllChanges),
                                            {.metric = 0.125}, options);
                    });
}

void run_declared_in_background(const fs::path& folder, Teller& teller) {
  run_in_background(folder, teller,
                    [](RunWriter& run, AsyncSaver& saver, std::uint64_t step, const Work& work) {
                      return declared(run, step, work, [&](Writer file) {
                        return run.save_async(saver, std::move(file), {.metric = 0.125});
                      });
                    });
}

constexpr auto kEvery = DeltaPolicy::Kind::every;
constexpr auto kCost = DeltaPolicy::Kind::cost;

#define OPERATION(name, prepare, run) \
  { name, prepare, run, observe, go_on, false, fault_of_run }
constexpr Operation kOperations[] = {
    OPERATION("store: create", prepare_nothing, run_create),
    OPERATION("store: folders of others", prepare_nothing, run_in_unsynced_folders),
    OPERATION("store: bytes", prepare_bytes, run_bytes),
    OPERATION("store: bytes, named", prepare_bytes, run_named<run_bytes>),
    OPERATION("store: stream", prepare_bytes, run_streamed),
    OPERATION("store: replace bytes", prepare_bytes, run_replace_bytes),
    OPERATION("store: writer", prepare_full, run_writer),
    OPERATION("store: deltas, every", prepare_deltas<kEvery>, run_deltas),
    OPERATION("store: deltas, cost", prepare_deltas<kCost>, run_deltas),
    OPERATION("store: deltas, named", prepare_deltas<kEvery>, run_named<run_deltas>),
    OPERATION("store: delta too dear", prepare_deltas<kCost>, run_dear_delta),
    OPERATION("store: replace a base", prepare_base, run_replace_base),
    OPERATION("store: background", prepare_deltas<kEvery>, run_background<false>),
    OPERATION("store: background, too dear", prepare_deltas<kCost>, run_background<true>),
    OPERATION("store: writer, background", prepare_declared, run_declared_in_background),
};
#undef OPERATION

}  // namespace
}  // namespace store_saves

std::span<const Operation> store_save_operations() {
  return store_saves::kOperations;
}

}  // namespace thalia::crash
