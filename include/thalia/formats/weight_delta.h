// What changed between two models, in files that other trainers publish to servers: slime's folder
// of weight versions and TRL's weight patches. docs/format/slime.md, docs/format/trl.md.
// open_any() reads both, with all that they are based on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "thalia/options.h"

namespace thalia {

enum class WeightDeltaKind { slime, trl };

struct WeightDeltaOptions {
  WeightDeltaKind kind = WeightDeltaKind::slime;
  /// "xor" or "overwrite" of slime; "gap_delta" or "raw" of TRL. Empty: the first of them.
  std::string encoding{};
  /// For slime alone: "xxh3-128", "blake3" or "adler32". Empty: the first of them.
  std::string checksum{};
  ChainOptions chain{};  ///< how both models are read
  OutputOptions output{};
  Work work{};
};

/// What comparing two models and writing what changed has told.
struct ModelChangeResult {
  std::uint64_t tensors = 0;  ///< of the model
  std::uint64_t changed_tensors = 0;
  std::uint64_t base_bytes = 0;  ///< of the model's elements
  std::uint64_t file_bytes = 0;  ///< of all files that were written
  double seconds = 0;
};

struct WeightDeltaResult : ModelChangeResult {
  std::uint64_t version = 0;
  std::uint64_t elements = 0;          ///< of the model: of slime, bytes
  std::uint64_t changed_elements = 0;  ///< the same
};

/// Writes what `input` has and `base` has not; both are files of any format, with the same dense
/// tensors. @param output for slime, the folder weight_vNNNNNN, which is made; its index comes
/// last. For TRL it is the file step_NNNNNN.safetensors. The number in the name is the version.
/// What changed is in memory, as it is written, until all is compared.
/// @throws as open_any() and save_safetensors(); UsageError (bad_argument) for another name or
/// option, (inconsistent) where the models differ in more than elements; UnsupportedError for a
/// tensor that the format cannot hold.
WeightDeltaResult write_weight_delta(const std::filesystem::path& base,
                                     const std::filesystem::path& input,
                                     const std::filesystem::path& output,
                                     const WeightDeltaOptions& options = {});

}  // namespace thalia
