// safetensors: a file, the index of a model in several, and the model. docs/format/safetensors.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/error.h"
#include "thalia/options.h"
#include "thalia/types.h"
#include "thalia/verify.h"

namespace thalia {

// safetensors files: a mapped reader and a crash-safe writer that keep the format's rules: no
// holes, no overlap, exact size, a header of at most 100 MB. Where the reference reader takes what
// the format's description forbids or leaves open (repeated keys, unknown fields of a tensor, white
// space before the header), this one refuses: it could not write it back.

// Bytes of arrays: reading, in the mapping, valid as long as the file object; writing, borrowed
// until the save returns.

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

/// A mapped safetensors file. Immutable after open.
class SafetensorsFile {
 public:
  /// @throws IoError, FormatError naming the tensor and field, UnsupportedError (unknown dtype,
  /// rank above 8).
  static SafetensorsFile open(const std::filesystem::path& path,
                              std::uint64_t max_header_bytes = 100'000'000);
  /// The same. With Access::copied the whole file is read into memory. Among the limits,
  /// max_file_bytes counts.
  static SafetensorsFile open(const std::filesystem::path& path, const ReadOptions& options,
                              std::uint64_t max_header_bytes = 100'000'000);

  /// The same, where a file may be larger than memory: with Access::copied nothing but the header
  /// is read, and a tensor's bytes hold nothing before touch().
  static SafetensorsFile open_header(const std::filesystem::path& path, const ReadOptions& options,
                                     std::uint64_t max_header_bytes = 100'000'000);
  /// Reads a part of a tensor's bytes, once; does nothing but with Access::copied. @throws IoError;
  /// FormatError (truncated) where the file has become shorter.
  void touch(ByteSpan part) const;

  const std::vector<NamedArray>& tensors()
      const noexcept;  ///< in the order of their bytes in the file
  /// In the order of the header; empty if there is none.
  const SafetensorsMetadata& metadata() const noexcept;
  bool has_metadata() const noexcept;  ///< true also for an empty "__metadata__"
  std::uint64_t file_bytes() const noexcept;
  /// Says that a part of a tensor's bytes is read next: where such parts follow each other, the
  /// system reads ahead of them.
  void read_ahead(ByteSpan part) const noexcept;

 private:
  struct Impl;
  detail::Shared<const Impl> impl_;
};

/// Writes atomically (temporary, sync, rename) and byte for byte as the reference does (safetensors
/// 0.8): tensors in its descending order of dtypes (U64, I64, F64, C64, F32, …), then by name;
/// header padded with spaces to 8 bytes. `metadata` keeps its order, which the reference leaves to
/// chance; nullopt and an empty map differ as they do there.
/// @throws IoError; UsageError (duplicate, size_mismatch, bad_argument: a tensor "__metadata__",
/// text that is not UTF-8); UnsupportedError for what the format lacks: a dtype, elements that are
/// no whole bytes, a header of more than 100 MB.
/// @param align the tensors' bytes begin at a multiple of this in the file, itself a multiple of 8
/// up to 4 MiB. With another than 8, the header ends in more spaces than the reference's does. Each
/// tensor then begins at a multiple of its elements' size; see docs/format/safetensors.md,
/// "Alignment".
/// @return bytes of the file.
std::uint64_t save_safetensors(const std::filesystem::path& path, std::vector<NamedArray> tensors,
                               const std::optional<SafetensorsMetadata>& metadata = std::nullopt,
                               const OutputOptions& output = {}, std::uint64_t align = 8);
/// The same bytes into memory: `room` is told how many there are, and gives exactly so many.
/// @throws the same, but for IoError; what `room` throws.
void serialize_safetensors(std::vector<NamedArray> tensors,
                           const std::optional<SafetensorsMetadata>& metadata,
                           const std::function<MutableByteSpan(std::uint64_t bytes)>& room,
                           std::uint64_t align = 8);

// A model in several files, and the one file that opens the model in a folder. The index tells
// which tensor lies in which file. docs/format/safetensors.md, "Models of several files".

/// What the files of an index are: all are of one kind.
enum class ShardKind { safetensors, thalia };

/// Files that an index may name, where nobody says otherwise.
inline constexpr std::uint64_t kMostModelFiles = 10'000;

struct IndexedTensor {
  std::string name;
  std::size_t file = 0;  ///< position in ModelIndex::files
};

/// {"metadata": …, "weight_map": {TENSOR: FILE, …}}
struct ModelIndex {
  std::vector<IndexedTensor> tensors{};     ///< in the order of the text; names are different
  std::vector<std::string> files{};         ///< names in the index's folder, different, sorted
  ShardKind kind = ShardKind::safetensors;  ///< also of one that names no file
  std::string metadata{};  ///< the member of this name as JSON; empty: there is none
  std::optional<std::uint64_t> total_size{};  ///< where the metadata say it in a whole number
};

/// None of the files is opened. @throws IoError; FormatError naming the tensor and the file:
/// (bad_json), (bad_value), (bad_name) for a file that is not of the folder, (inconsistent) for a
/// name that is there twice, (limit_exceeded).
ModelIndex read_model_index(const std::filesystem::path& path, const ReadLimits& limits = {});

/// Which file opening this path begins with: the path itself if it is not a folder, or is a folder
/// that is one checkpoint of another format. For another folder: the first of model.thalia,
/// model.thalia.index.json, model.safetensors and model.safetensors.index.json that exists, or else
/// what find_safetensors_model() finds. So a whole file comes before an index, as in transformers.
/// @throws IoError, and where the folder has none of these; UsageError (bad_argument) if it has
/// several models of other names, (not_found) if it has parts of one without the index;
/// UnsupportedError for a checkpoint of torch.distributed.checkpoint, with what reads it.
std::filesystem::path find_model(const std::filesystem::path& path);

// A model as one thing, whether it lies in one file or in several with an index: checked, written
// in shards, and its texts edited. open_any() reads it.
// docs/format/safetensors.md.

struct SafetensorsModelOptions {
  /// Where the folder of its policy is not empty, files of the model lie in it, links followed. An
  /// index names files of its own folder only, whatever the policy says: nothing is searched.
  ChainOptions chain{};
  std::uint64_t max_header_bytes = 100'000'000;  ///< of one file
  std::uint64_t max_files = kMostModelFiles;     ///< of one model; each is held open
};

/// Which file opening this path as a safetensors model begins with: the path itself if it is no
/// folder, else of the folder model.safetensors, or model.safetensors.index.json, or the one
/// *.safetensors that is no shard, or the one *.safetensors.index.json, whichever comes first in
/// this list. A shard is named like NAME-00001-of-00002.safetensors. find_model() also takes
/// .thalia files. @throws UsageError (not_found) where the folder has none of these, (bad_argument)
/// if it has several of one kind, and names them; IoError.
std::filesystem::path find_safetensors_model(const std::filesystem::path& path);

/// `tensor` is as printable() shows it; empty: the file as a whole. A warning is no reason to
/// refuse the model.
struct SafetensorsFinding : Finding {
  std::string file{};  ///< its name; empty: the index
};

/// Everything that is wrong with a model, where open_any() stops at the first: files that are
/// missing or damaged, tensors that are in the index and not in the file that it names, in a file
/// and not in the index, or in two files, and a total_size that is not the sum of the tensors'
/// bytes, which open_any() takes. Empty: nothing is. Formats of this kind have no checksums, so
/// changed elements are never found. @throws UsageError, IoError if there is nothing to check;
/// FormatError for an index that cannot be read.
std::vector<SafetensorsFinding> check_safetensors_model(
    const std::filesystem::path& path, const SafetensorsModelOptions& options = {});

/// Bytes of some of a model's tensors, which it gets as positions, one for each.
using ModelPayloads = std::function<std::vector<ByteSpan>(std::span<const std::size_t> tensors)>;

struct ModelSaveOptions {
  ShardKind kind = ShardKind::safetensors;  ///< what the files are
  /// Bytes of tensors in one file at most. A tensor that is larger gets a file of its own.
  std::uint64_t max_shard_bytes = 5'000'000'000;
  std::uint64_t align = 8;  ///< of safetensors files, as of save_safetensors()
  /// For .thalia files everything except file_uuid applies; for safetensors files, output, progress
  /// and the stop. Progress is that of the whole model.
  SaveOptions save{};
  /// Where a model is not in memory as a whole: called before each file for the tensors of that
  /// file, whose NamedArray::bytes are not looked at. What it gives is borrowed until it is called
  /// again, or the save ends. What it throws ends the save.
  ModelPayloads payloads{};
};

struct ModelSaved {
  std::filesystem::path path;      ///< of the index, or of the one file
  std::vector<std::string> files;  ///< names in the folder
  std::uint64_t output_bytes = 0;  ///< of all files, the index among them
};

/// Writes a model in shards as Hugging Face's programs do: in the order of `tensors`, a new shard
/// where the next tensor does not fit, and `metadata` in each. `path` is a folder, which is made
/// if it is missing, and gets model-00001-of-00003.safetensors, … and
/// model.safetensors.index.json, or the same of .thalia files. Or it is that of an index,
/// NAME.safetensors.index.json or NAME.safetensors.index.VARIANT.json, or of a file,
/// NAME.safetensors: the files are named after it and lie next to it. What fits one shard becomes
/// NAME.safetensors without an index, unless `path` is that of an index.
///
/// The index comes last and replaces an older one in one step; the older model's files go after it,
/// first of all those that would be opened before the index. Where `path` is a folder, the model is
/// all that it holds: what it has of a model of that name goes, in either kind, and links among its
/// names are replaced. No file of an older model is written over: where one of the names is taken,
/// all shards are named NAME-2-00001-of-00003.safetensors, or 3, …. So a reader gets the old model
/// or the new one, or an error, and so does who comes after a crash, which may leave files that no
/// index names; the next save into the folder removes them.
///
/// In .thalia files, regions and roles follow from the names (region_for_name(), role_of_name()),
/// and the metadata are those of a file that was converted from safetensors.
/// @throws as save_safetensors(), and as Writer; UsageError (exists), (bad_argument) for a path of
/// the other kind.
ModelSaved save_model(const std::filesystem::path& path, const std::vector<NamedArray>& tensors,
                      const std::optional<SafetensorsMetadata>& metadata = std::nullopt,
                      const ModelSaveOptions& options = {});

/// A text under a key; nullopt removes the key.
using SafetensorsMetadataChanges = std::vector<std::pair<std::string, std::optional<std::string>>>;

struct SafetensorsEditOptions {
  ReadLimits limits{};
  std::uint64_t max_header_bytes = 100'000'000;
  /// Allows an edit in place. false: old or new, whatever happens.
  bool in_place = true;
  OutputOptions output{};  ///< the durability
  Work work{};             ///< progress and the stop
  Access access = Access::mapped;
};

/// How an edit was made.
enum class SafetensorsEdit {
  unchanged,  ///< the file has these texts already, and was not touched
  cloned,     ///< a new file that shares the tensors' blocks with the old one, put in its place
  in_place,   ///< the bytes that differ, all in one sector of 512 bytes, in one write
  rewritten,  ///< a new file, put in its place
};

/// Changes texts of "__metadata__" in one .safetensors file; all else of its header stays as it is
/// written. Where the new header fits the room of the old one, tensors are not written again if the
/// file system shares blocks between files (Btrfs, XFS), or if all bytes that differ lie in one
/// sector and options.in_place is set. A sector that is torn by a power loss may lose the header,
/// and with it the file; disks that write a sector whole or not at all, as nearly all say they do,
/// never leave that. Open readers of a file that is edited in place may see the new texts.
/// @throws IoError, FormatError, UnsupportedError as SafetensorsFile::open(); UsageError
/// (duplicate) for two changes of a key, (bad_argument) for text that is not UTF-8.
SafetensorsEdit edit_safetensors_metadata(const std::filesystem::path& path,
                                          const SafetensorsMetadataChanges& changes,
                                          const SafetensorsEditOptions& options = {});

}  // namespace thalia
