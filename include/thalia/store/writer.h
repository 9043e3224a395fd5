// RunWriter: saves into a run, and everything else that changes one.
//
//   thalia::RunWriter run("runs/20260115_143022_a1b2c3d4");
//   // Full or delta, as the run's policy says:
//   run.save("phase1", step, brain, {.metric = loss});
//
//   thalia::Writer writer = run.new_checkpoint("phase1", step);
//   // Declare tensors. Then:
//   run.commit(std::move(writer), {.metric = loss});
//
// docs/format/store.md, "Saving".
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/async_save.h"
#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/state/brain.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/delta.h"
#include "thalia/storage.h"
#include "thalia/store/run.h"
#include "thalia/writer.h"

namespace thalia {

/// The specification's steps, and what follows them, in their order. Bytes go through each of them.
/// A .thalia file is digested while it is written, and synced and named at its end: all of that is
/// `write`; for a full file so is `sidecar`. For what is streamed or copied, `write` is the first
/// three.
enum class SaveStep {
  serialize,    ///< the checkpoint as bytes, which shows errors before the disk is touched
  digest,       ///< SHA-256
  write,        ///< into a file that nobody sees
  sync,         ///< of the file
  rename,       ///< to its name
  sidecar,      ///< NAME.sha256, in the same way
  sync_folder,  ///< the checkpoint is saved
  journal,      ///< what the listing knows of it
  latest,       ///< the link to it
  best,         ///< the link to it, if it is the best
  retain,       ///< what retention does not keep is removed
};
std::string_view save_step_name(SaveStep step) noexcept;

struct RunWriterOptions {
  bool wait = false;  ///< for as long as another process holds the run's lock
  std::stop_token cancel{};
  Durability durability = Durability::full;
  Access access = Access::mapped;  ///< as of Run::open()
  /// In place of the run's configuration, which is written anew. It has the same extension, and the
  /// phases that there are, and may have more.
  std::optional<RunConfig> config{};
  /// Called before each step, by the thread that carries it out; what it throws ends the save
  /// there.
  std::function<void(SaveStep)> on_step{};
  /// One sentence a call: a file system without locks or links, what could not be removed.
  std::function<void(const std::string&)> on_warning{};
};

/// What a caller says of a checkpoint.
struct SaveInfo {
  std::optional<double> metric{};  ///< of the phase's metric; NaN is never the best
  /// Puts it in the place of one of the same step. Else that is a UsageError (exists).
  bool replace = false;
  /// For bytes, and for files of other formats than .thalia: the keys that the record has. The
  /// configuration may require some. Keys that save_file() finds in a file that it can read count,
  /// too.
  std::vector<std::string> keys{};
};

struct StoredCheckpoint {
  CheckpointEntry entry;
  std::filesystem::path path;
  bool is_best = false;              ///< of its phase, now
  std::vector<std::string> removed;  ///< files of checkpoints that retention did not keep
  double seconds = 0;                ///< of which sync_seconds waiting for the disk
  double sync_seconds = 0;
};

struct StorePruneOptions {
  bool dry_run = false;
  std::optional<RetentionPolicy> policy{};  ///< in place of the phase's
};
struct StorePruneResult {
  std::vector<CheckpointEntry> entries;  ///< as they were
  std::vector<RetentionDecision>
      decisions;  ///< as plan_retention() made them, once what stays was found whole
  std::uint64_t freed_bytes = 0;
  std::vector<std::string> removed;
};

struct StoreRebaseOptions {
  unsigned max_depth = 64;  ///< as of RebaseOptions
};

struct PromoteOptions {
  std::optional<std::uint64_t> step{};  ///< nullopt: the phase's best, else its latest
  std::optional<std::string> gate{};    ///< nullopt: the phase's
  bool force = false;                   ///< in place of the gate that is there
};
struct PromoteResult {
  GateEntry gate;
  bool is_cloned = false;  ///< the copy shares its blocks with the original until one is changed
};

/// Holds the run's lock: one at a time, over all processes. Keep it for as long as the training, so
/// that no second one saves into the run, or for one save. What a process that was killed left of
/// its saves is swept up when the next one is made. Internally synchronised; the destructor waits
/// for saves in the background, but not in a callback of one of them, nor in a forked child.
class RunWriter {
 public:
  /// @throws as Run::open(); IoError with EWOULDBLOCK that names the holder of the lock; UsageError
  /// (bad_argument) for a configuration that cannot take the run's place.
  explicit RunWriter(const std::filesystem::path& folder, RunWriterOptions options = {});
  ~RunWriter();
  RunWriter(RunWriter&&) noexcept;
  RunWriter& operator=(RunWriter&&) noexcept;

  const Run& run() const noexcept;

  // --- Saving ---------------------------------------------------------------
  // A delta whose base turns out damaged is saved as a full file, and a warning says so; of a brain
  // in the background that save fails, and the next is a full file.
  //
  // @throws UsageError (exists) where the step was saved before, (not_found) for a phase,
  // (bad_argument) beyond kMaxStep, (wrong_state) to replace what a save under way makes a delta
  // of, (bad_argument) for a record without a required key; else as the save of that
  // kind. Where it throws, no checkpoint of that step is there; where it throws after the step
  // sync_folder, the checkpoint is saved, and the next save repairs the rest.

  /// A writer whose commit() is left to commit() or commit_async(), for a run of .thalia files. It
  /// digests the file while it is written.
  Writer new_checkpoint(std::string_view phase, std::uint64_t step, SaveOptions options = {},
                        bool replace = false);
  StoredCheckpoint commit(Writer&& writer, const SaveInfo& info = {});
  /// @param ready as of AsyncSaver::save_async().
  SaveHandle<StoredCheckpoint> commit_async(AsyncSaver& saver, Writer&& writer,
                                            const SaveInfo& info = {},
                                            Snapshot snapshot = Snapshot::copy,
                                            std::function<void()> ready = {});

  /// A full file or a delta, as the run's policy says; the delta against the newest checkpoint.
  StoredCheckpoint save(std::string_view phase, std::uint64_t step, const BrainState& brain,
                        const SaveInfo& info = {}, const BrainSaveOptions& options = {});
  SaveHandle<StoredCheckpoint> save_async(AsyncSaver& saver, std::string_view phase,
                                          std::uint64_t step, const BrainState& brain,
                                          const SaveInfo& info = {},
                                          const BrainSaveOptions& options = {},
                                          Snapshot snapshot = Snapshot::copy);
  /// The same of what a writer of new_checkpoint() has declared, all of it with its bytes, which
  /// are borrowed until this returns. The writer is as it was: nobody commits it. @throws
  /// UsageError (bad_argument) for a tensor whose bytes come through Writer::write().
  StoredCheckpoint save(const Writer& writer, const SaveInfo& info = {});
  /// The same in the background, which takes the writer over. @param ready as of
  /// AsyncSaver::save_async().
  SaveHandle<StoredCheckpoint> save_async(AsyncSaver& saver, Writer&& writer,
                                          const SaveInfo& info = {},
                                          Snapshot snapshot = Snapshot::copy,
                                          std::function<void()> ready = {});
  /// The same for any state; state_source() gives that of a file.
  StoredCheckpoint save(std::string_view phase, std::uint64_t step, const StateSource& state,
                        const SaveInfo& info = {}, const SaveOptions& options = {});

  /// Bytes that are not looked into, whatever the run's extension is.
  StoredCheckpoint save_bytes(std::string_view phase, std::uint64_t step, ByteSpan bytes,
                              const SaveInfo& info = {});
  /// The same in pieces, digested while they are written.
  StoredCheckpoint save_stream(std::string_view phase, std::uint64_t step,
                               const ByteProducer& produce, const SaveInfo& info = {});
  /// A copy of a file, which shares its blocks where the file system can. In a run of .thalia files
  /// it has to be one, and of a delta, or of a model in parts, the state that it stands for is
  /// saved.
  StoredCheckpoint save_file(std::string_view phase, std::uint64_t step,
                             const std::filesystem::path& file, const SaveInfo& info = {});

  /// As Run::load(), and the run goes on from there: `latest` leads to what was loaded, and what
  /// was passed over as damaged is not counted as a checkpoint from here on. @throws as
  /// Run::load(); IoError.
  LoadedCheckpoint resume(std::string_view phase, const LoadOptions& options = {});

  // --- Keeping --------------------------------------------------------------
  /// What every save does at its end, now. Before anything goes, what is to stay is read if it
  /// is not known to be whole.
  StorePruneResult prune(std::string_view phase, const StorePruneOptions& options = {});
  /// Turns the phase's deltas: its newest checkpoint becomes a full file, each older one a delta of
  /// the next newer. Those that were left behind keep what they are based on. Names, states,
  /// metrics, `latest` and `best` stay as they are; digests are those of the new files. As
  /// thalia::rebase(): every checkpoint loads at each moment, and a call that ended early can be
  /// made again. Saves wait. @throws UsageError (bad_argument), (wrong_state) for a run of other
  /// files and while a save under way makes a delta of one of them; UnsupportedError; what opening
  /// a checkpoint throws: all before anything is changed; IoError; CancelledError.
  RebaseResult rebase(std::string_view phase, const StoreRebaseOptions& options = {});
  /// Copies a checkpoint to gates/, with a digest of its own; for a delta its state as a full file.
  /// What is copied is checked against its digest first. @throws UsageError (exists) if the gate
  /// exists, and `force` is not set; (not_found); IntegrityError.
  PromoteResult promote(std::string_view phase, const PromoteOptions& options = {});
  /// The phase begins anew: the next metric is its best, whatever it is.
  void reset_best(std::string_view phase);

 private:
  friend struct detail::Inside;
  class Impl;
  detail::Owned<Impl> impl_;
};

}  // namespace thalia
