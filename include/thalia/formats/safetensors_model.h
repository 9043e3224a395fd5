// A safetensors model as one thing, whether it lies in one file or in several with an index:
// checked, written in shards, and its texts edited. open_any() reads it.
// docs/format/safetensors.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "thalia/error.h"
#include "thalia/formats/model_index.h"
#include "thalia/options.h"
#include "thalia/safetensors.h"
#include "thalia/verify.h"

namespace thalia {

struct SafetensorsModelOptions {
  /// Where the folder of its policy is not empty, files of the model lie in it, links followed. An
  /// index names files of its own folder only, whatever the policy says: nothing is searched.
  ChainOptions chain{};
  std::uint64_t max_header_bytes = 100'000'000;  ///< of one file
  std::uint64_t max_files = kMostModelFiles;     ///< of one model; each is held open
};

/// Which file opening this path as a safetensors model begins with: the path itself where it is no
/// folder, else of the folder model.safetensors, or model.safetensors.index.json, or the one
/// *.safetensors that is no shard, or the one *.safetensors.index.json, whichever comes first in
/// this list. A shard is named like NAME-00001-of-00002.safetensors. find_model() also takes
/// .thalia files. @throws UsageError (not_found) where the folder has none of these, (bad_argument)
/// if it has several of one kind, and names them; IoError.
std::filesystem::path find_safetensors_model(const std::filesystem::path& path);

struct SafetensorsFinding {
  std::string file;     ///< its name; empty: the index
  std::string tensor;   ///< as printable() shows it; empty: the file as a whole
  std::string message;  ///< one line
  ErrorCode code;
  Severity severity;  ///< a warning is no reason to refuse the model
};

/// Everything that is wrong with a model, where open_any() stops at the first: files that are
/// missing or damaged, tensors that stand in the index and not in the file that it names, in a file
/// and not in the index, or in two files, and a total_size that is not the sum of the tensors'
/// bytes, which open_any() takes. Empty: nothing is. Formats of this kind have no checksums, so
/// changed elements are never found. @throws UsageError, IoError where there is nothing to check;
/// FormatError for an index that cannot be read.
std::vector<SafetensorsFinding> check_safetensors_model(
    const std::filesystem::path& path, const SafetensorsModelOptions& options = {});

struct SafetensorsModelSaveOptions {
  /// Bytes of tensors in one file at most. A tensor that is larger gets a file of its own.
  std::uint64_t max_shard_bytes = 5'000'000'000;
  std::uint64_t align = 8;  ///< as of save_safetensors()
  OutputOptions output{};
  Work work{};  ///< progress and the stop
};

struct SafetensorsModelSaved {
  std::filesystem::path path;      ///< of the index, or of the one file
  std::vector<std::string> files;  ///< names in the folder
  std::uint64_t output_bytes = 0;  ///< of all files, the index among them
};

/// Writes a model in shards as Hugging Face's programs do: in the order of `tensors`, a new shard
/// where the next tensor does not fit, and `metadata` in each. `path` is a folder, which is made
/// if it is missing, and gets model-00001-of-00003.safetensors, … and
/// model.safetensors.index.json. Or it is that of an index, NAME.safetensors.index.json or
/// NAME.safetensors.index.VARIANT.json, or of a file, NAME.safetensors: the files are named after
/// it and lie next to it. What fits one shard becomes NAME.safetensors without an index, unless
/// `path` is that of an index.
///
/// The index comes last and replaces an older one in one step; the older model's files go after it,
/// first of all NAME.safetensors, which would be opened before the index.
/// No file of an older model is written over: where one of the names is taken, all shards are named
/// NAME-2-00001-of-00003.safetensors, or 3, …. So a reader gets the old model or the new one, or an
/// error, and so does who comes after a crash, which may leave files that no index names; the next
/// save into the folder removes them. @throws as save_safetensors(); UsageError (exists).
SafetensorsModelSaved save_safetensors_model(
    const std::filesystem::path& path, const std::vector<SafetensorsTensor>& tensors,
    const std::optional<SafetensorsMetadata>& metadata = std::nullopt,
    const SafetensorsModelSaveOptions& options = {});

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
