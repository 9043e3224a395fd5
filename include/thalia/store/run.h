// Run: the folder of a training run, for those who read it. Any number of processes may, while one
// saves.
//
//   thalia::Run run = thalia::Run::open("runs/20260115_143022_a1b2c3d4");
//   for (const auto& entry : run.list("phase1")) print(entry.step, entry.metric);
//   thalia::LoadedCheckpoint last = run.load("phase1");
//   thalia::Tensor w = last.chain.read(last.chain.reader().tensor("w_rec"));
//
// docs/format/store.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/state/delta.h"
#include "thalia/state/value.h"
#include "thalia/storage.h"
#include "thalia/store/config.h"
#include "thalia/store/retention.h"

namespace thalia {

namespace store {
class RunFolder;
}

/// How the bytes of a checkpoint are checked before it is handed out.
enum class LoadCheck {
  digest,    ///< against NAME.sha256, all of them, before anything is parsed; where that file is
             ///< missing, a warning, and the whole file against its own checksums
  on_touch,  ///< as ReadOptions say: what is read of a .thalia file, when it is read. For servers
             ///< that load some regions of a large file
};

struct LoadOptions {
  LoadCheck check = LoadCheck::digest;
  /// The step to load, and no other. nullopt: the latest; if that is damaged, the next older one,
  /// and so on through all that exist.
  std::optional<std::uint64_t> step{};
  /// One sentence a call: a missing digest, a checkpoint that was passed over.
  std::function<void(const std::string&)> on_warning{};
  ReadOptions read{};
};

struct LoadAttempt {
  std::filesystem::path path;
  std::string failure;      ///< empty of the one that was loaded
  bool is_damaged = false;  ///< its bytes are not those that were saved
};

/// A .thalia checkpoint, with what it is based on.
struct LoadedCheckpoint {
  CheckpointEntry entry;
  std::filesystem::path path;
  ChainReader chain;
  std::vector<LoadAttempt> attempts;  ///< in their order; the last one is this
};

/// A checkpoint of another kind: its bytes, mapped.
struct LoadedBytes {
  CheckpointEntry entry;
  std::filesystem::path path;
  StoredBytes bytes;
  std::vector<LoadAttempt> attempts;
};

/// An irreplaceable copy of the best checkpoint of a phase.
struct GateEntry : KeptFile {
  std::string name{};
  std::string file{};         ///< name in gates/
  std::string source_file{};  ///< that it was copied from
  std::string sha256{};       ///< 64 hexadecimal digits; empty if it has no digest
  std::optional<double> metric{};
  std::uint64_t promoted_at = 0;  ///< seconds since 1970

  friend bool operator==(const GateEntry&, const GateEntry&) = default;
};

/// No checkpoint of a phase can be loaded. Code checksum_mismatch; what() lists every attempt.
class NoValidCheckpointError : public IntegrityError {
 public:
  NoValidCheckpointError(std::vector<LoadAttempt> attempts, ErrorContext context);
  const std::vector<LoadAttempt>& attempts() const noexcept { return attempts_; }

 private:
  std::vector<LoadAttempt> attempts_;
};

/// A cheap handle; copies share it. Immutable: what it says of checkpoints is asked of the file
/// system at each call. Any number of threads may use one. A file that is open stays whole, also
/// when it is pruned.
class Run {
 public:
  /// Reads the configuration. `access` is how checkpoints are opened where no LoadOptions say it,
  /// to look at one or to sum it up. @throws IoError; FormatError for an invalid configuration;
  /// UsageError (not_found) where the folder has neither run.toml nor run.json, (bad_argument)
  /// if it has both.
  static Run open(const std::filesystem::path& folder, Access access = Access::mapped);

  const std::filesystem::path& folder() const noexcept;
  const RunConfig& config() const noexcept;
  std::filesystem::path phase_folder(std::string_view phase) const;  ///< of its checkpoints
  std::filesystem::path path_of(const CheckpointEntry& entry) const;
  /// The name of a step's file. @throws UsageError (bad_argument) beyond kMaxStep, (not_found).
  std::string file_name(std::string_view phase, std::uint64_t step) const;

  /// The checkpoints of a phase, in the order of their steps; no file is opened. Temporary files,
  /// links and files of other names do not count. @throws IoError; UsageError (not_found) for a
  /// phase.
  std::vector<CheckpointEntry> list(std::string_view phase) const;
  /// What `latest` leads to, or where that leads nowhere the one of the largest step. nullopt:
  /// none.
  std::optional<CheckpointEntry> latest(std::string_view phase) const;
  std::optional<CheckpointEntry> best(std::string_view phase) const;
  /// The last phase that has a checkpoint.
  std::optional<std::string> current_phase() const;

  /// For a run of .thalia files. @throws NoValidCheckpointError; UsageError (not_found) if there
  /// is no checkpoint, or none of that step, (wrong_state) for a run of other files.
  LoadedCheckpoint load(std::string_view phase, const LoadOptions& options = {}) const;
  /// For any run: the file's bytes. Those of a delta are not a state.
  LoadedBytes load_bytes(std::string_view phase, const LoadOptions& options = {}) const;

  /// In the order of their names.
  std::vector<GateEntry> gates() const;
  std::filesystem::path gate_path(std::string_view name) const;
  /// Checks the digest of a gate, of which there has to be one, and opens it. There is no other one
  /// to fall back to. @throws IntegrityError; UsageError (not_found).
  LoadedCheckpoint load_gate(std::string_view name, const LoadOptions& options = {}) const;
  LoadedBytes load_gate_bytes(std::string_view name, const LoadOptions& options = {}) const;

 private:
  friend struct detail::Inside;
  explicit Run(std::shared_ptr<const store::RunFolder> folder) : folder_(std::move(folder)) {}
  detail::Shared<const store::RunFolder> folder_;
};

struct RunSummary {
  std::filesystem::path folder;
  std::string id;  ///< the folder's name
};
/// The folders below `runs` that are runs, in the order of their names; run ids are thus in the
/// order of their start. Empty if there is no such folder.
std::vector<RunSummary> find_runs(const std::filesystem::path& runs);

/// "20260115_143022_a1b2c3d4": the time of the start in UTC, and the low 32 bits of the master
/// seed.
std::string run_id(std::uint64_t started_at, std::uint64_t master_seed);
/// True of such a text.
bool is_run_id(std::string_view text) noexcept;

/// Makes the folder, those of the phases, gates/, eval/, that of the pool and of fixed networks,
/// and writes the configuration, last. All of it is on the disk afterwards. @throws UsageError
/// (exists) if there is a run; IoError.
Run create_run(const std::filesystem::path& folder, const RunConfig& config,
               ConfigFormat format = ConfigFormat::toml);

struct RestoreOptions {
  LoadOptions load{};
  std::optional<std::string> gate{};  ///< this one instead of a phase's checkpoint
  OutputOptions output{};
};
struct RestoreResult {
  CheckpointEntry entry;
  std::filesystem::path source;
  std::vector<LoadAttempt> attempts;
  std::uint64_t bytes = 0;  ///< written
  bool is_cloned = false;   ///< the copy shares its blocks with the original until one is changed
};
/// Writes the checkpoint that load() would give to a file outside of the run: the same bytes; for a
/// delta the state that it stands for, as a full file. @throws as Run::load(), and OutputFile.
RestoreResult restore(const Run& run, std::string_view phase, const std::filesystem::path& target,
                      const RestoreOptions& options = {});

/// A tensor as the caller's model has it.
struct ExpectedTensor {
  std::string name;  ///< as in a .thalia file, or "region/tensor"
  Shape shape;
  DType dtype;
};
/// What of a checkpoint does not fit a model. All of it, in the order of the checkpoint or of
/// names.
struct ModelFit {
  std::vector<std::string> missing{};     ///< in the checkpoint: names as the model has them
  std::vector<std::string> unexpected{};  ///< in the checkpoint: REGION/NAME of tensors
  /// REGION/NAME of tensors of another shape or dtype, each with both: "a/w (f32 [2] in the
  /// checkpoint and f32 [3] in the model)".
  std::vector<std::string> different{};

  bool ok() const noexcept { return missing.empty() && unexpected.empty() && different.empty(); }
};
/// Holds the tensors of a checkpoint against those of a model. @param patterns which of the
/// checkpoint's are held against it; empty: all. No tensor is read. @throws FormatError.
ModelFit compare_with_model(const ChainReader& chain, std::span<const ExpectedTensor> expected,
                            const std::vector<std::string>& patterns = {});
/// The same. @throws UsageError (shape_mismatch) that lists all that does not fit.
void check_strictly(const ChainReader& chain, std::span<const ExpectedTensor> expected,
                    const std::vector<std::string>& patterns = {});

// Records: what a checkpoint says of itself in its metadata, and how records of earlier versions
// become those of today. docs/format/store.md, "Records".

/// From a record of one version to the next. Changes the metadata, and may refuse it.
using RecordMigration = std::function<void(Value& metadata)>;

struct RecordSchema {
  std::uint64_t version = 1;  ///< that this program writes, as the member `version_key`
  std::string version_key = "checkpoint_version";
  /// By the version that each takes: it gives the next one.
  std::map<std::uint64_t, RecordMigration> migrations{};
};

struct MigratedRecord {
  Value metadata;
  std::uint64_t from = 0;  ///< version that it had
};

/// Takes a record through every version up to the schema's; nothing is guessed. @throws
/// UnsupportedError (unsupported_version) for a version that is newer, or that no migration takes;
/// FormatError (bad_value) if it has no version, or one that is no integer; what a migration
/// throws.
MigratedRecord migrate_record(Value metadata, const RecordSchema& schema);

}  // namespace thalia
