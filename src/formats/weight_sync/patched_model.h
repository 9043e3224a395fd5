// A model and what was published of later versions of it: read as the model with the last of them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/source/opened_file.h"
#include "io/memory/allocation_limit.h"

namespace thalia::formats::weight_sync {

/// One version beside the model that it is based on. Immutable; any number of threads.
class WeightPatch {
 public:
  WeightPatch() = default;
  WeightPatch(const WeightPatch&) = delete;
  WeightPatch& operator=(const WeightPatch&) = delete;
  virtual ~WeightPatch() = default;

  virtual std::vector<std::filesystem::path> files() const = 0;  ///< the one that opens it first
  virtual std::uint64_t file_bytes() const = 0;
  virtual std::vector<std::string_view> tensors() const = 0;  ///< that it changes
  virtual bool changes(std::string_view tensor) const = 0;
  /// The checksum that read() compares; empty: there is none.
  virtual std::string_view checksum() const { return {}; }
  /// Makes the new state of a tensor that it changes in place of the old one. @throws FormatError,
  /// CompressionError, IntegrityError, IoError, which name the file.
  virtual void apply(std::string_view tensor, DType dtype, MutableByteSpan state,
                     io::MemoryBudget& budget) const = 0;
};

using WeightPatches = std::vector<std::unique_ptr<const WeightPatch>>;

/// @param patches the oldest first. @throws FormatError (inconsistent) for one that changes a
/// tensor that the model lacks.
std::shared_ptr<const OpenedFile> patched_model(std::shared_ptr<const OpenedFile> model,
                                                WeightPatches patches, const OpenOptions& options);

/// The safetensors model in a folder, of which a file that is not the caller's names this one.
/// @throws as open_safetensors_file(); FormatError where the policy forbids it.
std::shared_ptr<const OpenedFile> open_based_on(const std::filesystem::path& model,
                                                const OpenOptions& options);

/// The folder of a file, by a path that tells its name and the folder above.
std::filesystem::path named_folder(const std::filesystem::path& file);

}  // namespace thalia::formats::weight_sync
