// BrainCheckpoint: a brain's whole state in one call each way.
//
//   thalia::BrainCheckpoint::save(brain, "stage1.thalia.zst",
//                                {.save = {.compression = {.level = 9}}});
//   thalia::BrainState again = thalia::BrainCheckpoint::load("stage1.thalia.zst");
//   thalia::BrainState some = thalia::BrainCheckpoint::load("large.thalia",
//                                                           {.regions = {"cortex"}, .lazy = true});
//
// docs/format/states.md, "States"; docs/format/format.md, "Wrappers"; docs/format/deltas.md;
// docs/format/v01.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "thalia/async_save.h"
#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/state/brain.h"
#include "thalia/state/delta.h"
#include "thalia/state/metadata.h"
#include "thalia/state/precision.h"
#include "thalia/state/quantization.h"
#include "thalia/state/value.h"
#include "thalia/types.h"

namespace thalia {

class ChainReader;  // thalia/state/delta.h

/// A checkpoint larger than this is not loaded unless BrainLoadOptions::max_file_bytes says so: the
/// specification's 10 GB.
inline constexpr std::uint64_t kDefaultMaxBrainBytes = 10'000'000'000;

struct BrainSaveOptions {
  /// Members that take the place of the brain's metadata of those names, or are added.
  Value metadata = Value::object();
  PrecisionPolicy precision_policy{};  ///< by default it keeps every tensor as it is
  SparseStorage sparse = SparseStorage::automatic;
  /// Weights of regions as codes of a few bits: lossy. After the policy of precisions, and of what
  /// is stored densely. BrainDeltaOptions refuse it.
  std::optional<QuantizationOptions> quantization{};
  bool include_homeostatic = true;
  /// Tensors of components that have no role of their own get what their names tell
  /// (docs/format/states.md, "Roles of names"); else other.
  bool roles_by_name = false;
  /// A name that ends in .zst or .lz4 asks for the whole file in frames of that kind, of the level
  /// of save.compression, instead of chunks in it. Its codec, if there is one, has to be that
  /// too.
  SaveOptions save{};
};

/// What a save, whole or as a delta, says of the state besides what every save says.
struct BrainContents {
  std::size_t regions = 0;  ///< pathways not counted
  std::size_t pathways = 0;
  std::size_t connections = 0;
  std::string precision_policy;              ///< the text of the one that was applied
  PrecisionStatistics precision_statistics;  ///< of the tensors as they are stored
  RoundingLoss rounding{};                   ///< what the policy cost
};

/// For a file in frames, `closing_checksum` and `identity` are those of the .thalia file inside,
/// and `codec` is that of the frames.
struct BrainSaveResult : SaveResult {
  std::filesystem::path path{};
  BrainContents contents{};
  std::vector<QuantizedTensorReport> quantized{};  ///< in the order of the file
  std::vector<std::string> not_finite{};  ///< paths of tensors that were not, for NaN or infinities
};

struct BrainDeltaOptions {
  /// Where brain.precision_policy keeps all types: apply the base's, as its metadata, or
  /// SavedBrain, names it, so that a chain keeps the policy that it began with.
  bool keep_policy = true;
  DeltaLossOptions loss{};
  /// For a base that is opened by its path, but for the work, which is that of `brain`.
  ChainOptions chain{};
  /// As for save(); by itself its compression is what DeltaOptions' is, within frames too.
  BrainSaveOptions brain{};
  bool pack = true;  ///< a small delta, as of DeltaOptions; within frames it is plain
};

/// A state that was saved and is still in memory, as training has its previous snapshot. A copy of
/// a BrainState is one: it shares the tensors' bytes until they are changed.
struct SavedBrain {
  BrainState state;                     ///< as it was saved
  std::filesystem::path path;           ///< of its file, which is not opened, and need not be there
  FileIdentity identity;                ///< as the save's result has it
  std::vector<TensorDigest> digests{};  ///< the same; tensors changed in place are found by them
  /// That it was saved with; for a delta, precision_policy is the one that its result names.
  BrainSaveOptions options{};
};

/// Names of regions are those in the file: pathways are "pathway:NAME". For a file in frames it is
/// as BrainSaveResult, and `sync_seconds` are not known.
struct BrainDeltaResult : DeltaResult {
  std::filesystem::path path{};
  BrainContents contents{};
};

struct BrainLoadOptions {
  /// Names of regions, pathways as "pathway:NAME"; empty: all. The connections
  /// that have both ends among these come with them; BrainLoadReport names the others.
  std::vector<std::string> regions{};
  /// The prefix of a brain of an ensemble, which is loaded as if it were alone in the file, names
  /// in `regions` included. Empty: the file as a whole.
  std::string brain{};
  /// Regions that `regions` does not name are read on first access (from any thread, once) instead
  /// of being left out; where it names none, all of them are.
  bool lazy = false;
  /// Tensors come back in the encoding and element type that they were saved from (zeros that a
  /// sparse one stored are gone if it was stored densely); else as stored.
  bool restore = true;
  /// A delta gives the state that it stands for, its bases are opened too; else it is refused.
  bool resolve_deltas = true;
  /// What is odd about a file that is loaded all the same, one sentence a call: a newer minor
  /// version, say.
  std::function<void(const std::string&)> on_warning{};
  ChainOptions chain{};
  /// False: no tensor is read, but of a file of version 0.1 all. In the place of each is an
  /// empty one, and 0 in the place of a number that a tensor holds: the state's texts.
  bool read_tensors = true;
  /// Bytes of the file, if it is opened by its path, and of each that a delta is based on; 0:
  /// any. The lesser of this and ReadLimits::max_file_bytes counts.
  std::uint64_t max_file_bytes = kDefaultMaxBrainBytes;
};

/// What of a file a state that was loaded does not have.
struct BrainLoadReport {
  /// "SOURCE->TARGET" of connections with an end that BrainLoadOptions::regions left out.
  std::vector<std::string> connections_left_out;
};

struct BrainInfo : FileTotals {
  std::filesystem::path path;
  std::uint64_t file_bytes = 0;
  std::string version;  ///< of the format: "1.0.0"
  std::vector<std::string> regions;
  std::vector<std::string> pathways;
  std::uint64_t connections = 0;
  bool is_delta = false;
  Value metadata = Value::object();
  std::vector<GrowthEvent> growth_history;
};

struct BrainValidation {
  bool valid = false;
  std::vector<std::string> issues;  ///< all of them, one sentence each
};

/// Static functions that share nothing: any thread may call any of them.
class BrainCheckpoint {
 public:
  /// Writes the whole state; the old file or the new one is there, whatever happens. The metadata
  /// is completed to the specification's schema: version, thalia_version and created are set.
  /// Tensors that are stored as they are are not copied; converted ones are in memory until the
  /// end.
  /// @throws as Writer; UsageError for a name and a compression that contradict each other.
  static BrainSaveResult save(const BrainState& brain, const std::filesystem::path& path,
                              const BrainSaveOptions& options = {});

  /// Copies the state and writes it in the background: the brain may be changed as soon as this is
  /// back. Not copied, tensors with bytes of their own are shared with the save, and have new ones
  /// once they are changed; borrowed ones stay as they are until it is done. @throws as save() and
  /// AsyncSaver::save_async(). What goes wrong later comes through the handle.
  static SaveHandle<BrainSaveResult> save_async(AsyncSaver& saver, const BrainState& brain,
                                                const std::filesystem::path& path,
                                                const BrainSaveOptions& options = {},
                                                Snapshot snapshot = Snapshot::copy);

  /// Has the saver's memory made ready, in the background, for save_async() of such a state with
  /// these options: without it the first one holds the training up several times as long as those
  /// that follow. Nothing is written. @throws as save_async().
  static void reserve(AsyncSaver& saver, const BrainState& brain, const std::filesystem::path& path,
                      const BrainSaveOptions& options = {});

  /// Saves what differs from another checkpoint, a full one or a delta itself, and finds that again
  /// by its path from the new file's folder. The old file or the new one is there, whatever
  /// happens.
  /// @throws as save(), ChainReader::open() and write_delta().
  static BrainDeltaResult save_delta(const BrainState& brain, const std::filesystem::path& path,
                                     const std::filesystem::path& base_checkpoint,
                                     const BrainDeltaOptions& options = {});
  /// The same against a checkpoint that is open. @throws as save() and write_delta().
  static BrainDeltaResult save_delta(const BrainState& brain, const std::filesystem::path& path,
                                     const ChainReader& base,
                                     const BrainDeltaOptions& options = {});

  /// The same against a base in memory: its file is not read. Not against what was saved with a
  /// threshold, as that is not what is in memory. @throws as save() and write_delta(); UsageError
  /// (bad_argument) for a state that is not the one that was saved.
  static BrainDeltaResult save_delta(const BrainState& brain, const std::filesystem::path& path,
                                     const SavedBrain& base, const BrainDeltaOptions& options = {});

  /// The same in the background, as save_async(). The base has been saved: a save of it that is not
  /// done is to be waited for. Its file is opened before this is back, and read in the background;
  /// tensors of a base in memory that borrow their bytes stay as they are until the save is done.
  /// @throws as save_delta() and AsyncSaver::save_async(). What goes wrong later comes through the
  /// handle.
  static SaveHandle<BrainDeltaResult> save_delta_async(AsyncSaver& saver, const BrainState& brain,
                                                       const std::filesystem::path& path,
                                                       const std::filesystem::path& base_checkpoint,
                                                       const BrainDeltaOptions& options = {},
                                                       Snapshot snapshot = Snapshot::copy);
  static SaveHandle<BrainDeltaResult> save_delta_async(AsyncSaver& saver, const BrainState& brain,
                                                       const std::filesystem::path& path,
                                                       const ChainReader& base,
                                                       const BrainDeltaOptions& options = {},
                                                       Snapshot snapshot = Snapshot::copy);
  static SaveHandle<BrainDeltaResult> save_delta_async(AsyncSaver& saver, const BrainState& brain,
                                                       const std::filesystem::path& path,
                                                       const SavedBrain& base,
                                                       const BrainDeltaOptions& options = {},
                                                       Snapshot snapshot = Snapshot::copy);

  /// Reads a checkpoint of any of the forms above, found by content. Raw dense tensors stay in the
  /// file's mapping, which the state keeps open. Saved again, a state that was loaded without some
  /// regions is a checkpoint without them and their connections.
  /// @throws as Reader::open(); UsageError (not_found) for a region, or a brain, that the file does
  /// not have, (wrong_state) for a brain of a file that is no ensemble; FormatError
  /// (limit_exceeded) for a file larger than the limit.
  static BrainState load(const std::filesystem::path& path, const BrainLoadOptions& options = {},
                         BrainLoadReport* report = nullptr);
  /// The same of a file that is open; `options.read` is for the bases of a delta.
  static BrainState load(const Reader& file, const BrainLoadOptions& options = {},
                         BrainLoadReport* report = nullptr);

  /// Reads header, names and metadata, no payload. @throws as Reader::open(), and
  /// parse_growth_history().
  static BrainInfo info(const std::filesystem::path& path, const ReadOptions& options = {});

  /// Checks everything, and that the state can be made; for a delta all that it is based on, too,
  /// which is looked for as in BrainLoadOptions. Never throws for what the file holds, or if
  /// there is none.
  static BrainValidation validate(const std::filesystem::path& path,
                                  const VerifyOptions& options = {},
                                  const std::vector<std::filesystem::path>& search = {},
                                  const BasePolicy& bases = {});
};

}  // namespace thalia
