// Files of the original loom program: JSON checkpoints and .entity files.
//
//   const thalia::EntityFile file = thalia::EntityFile::open("model.entity");
//   thalia::LoomNetwork network = file.network();
//   const std::vector<float> w = thalia::loom_master(network.layers.at(0));
//   thalia::save_entity("again.entity", network);
//
// docs/format/loom.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/formats/loom_network.h"
#include "thalia/options.h"
#include "thalia/storage.h"
#include "thalia/types.h"

namespace thalia {

struct EntityBlob {
  std::string path;   ///< "layers.0.parallel_branches.1", "layers.3.q4_0.200"
  std::string dtype;  ///< as the file spells it
  float scale = 0;    ///< 0: the file says none
  bool native = false;
  std::uint64_t offset = 0;  ///< of its bytes, from the start of the file
  std::uint64_t length = 0;
};

/// Part of a file that a .entity file is.
struct EntitySection {
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length{};  ///< nullopt: up to the end of the file
};

/// An open .entity file. Opening reads the bytes before the blobs. There are no checksums. A cheap
/// handle; immutable; any number of threads.
class EntityFile {
 public:
  /// @throws IoError; FormatError naming field and bound, also for a blob that lies outside;
  /// UnsupportedError for another version.
  static EntityFile open(const std::filesystem::path& path, const ReadOptions& options = {},
                         const EntitySection& section = {});
  /// The same of a file's bytes. `name` is for messages.
  static EntityFile from_bytes(StoredBytes bytes, std::string name = {},
                               const ReadLimits& limits = {});

  /// The network as the header describes it: layers in the order of the file, nothing filled in, no
  /// weights.
  const LoomNetwork& header() const noexcept;
  const std::vector<EntityBlob>& blobs() const noexcept;  ///< in the order of the file
  std::uint64_t file_bytes() const noexcept;              ///< of the section
  /// From the start of the file to what offsets of blobs are counted from in it.
  std::uint64_t payload_offset() const noexcept;
  /// Some of the header's keys that mean nothing to the format; they are passed over.
  const std::vector<std::string>& unknown_keys() const noexcept;

  /// Bytes of a blob as they are stored, which stay in the mapping and hold it open.
  /// @throws UsageError (not_found); IoError.
  StoredBytes blob_bytes(std::size_t blob) const;

  /// What the original's loader makes of the file. All layers have their settings, and those listed
  /// in `layers`, with all that is in them, their weights; nullopt: all of them. A number that no
  /// layer has counts for nothing. Reads the bytes of no other blob.
  /// @throws FormatError (inconsistent, out_of_bounds, …); UnsupportedError.
  LoomNetwork network(const std::optional<std::vector<std::uint64_t>>& layers = {}) const;
  /// The weights of the blob "layers.I". @throws UsageError (not_found); FormatError.
  LoomWeights layer_weights(std::uint64_t layer) const;
  /// What a transformer has besides its layers; a weight_dtype that is missing is inferred.
  /// @throws UsageError (not_found) if the file is not a transformer; FormatError (inconsistent)
  /// where embeddings, or a head or a norm that it announces, are missing.
  LoomTransformer transformer() const;

 private:
  friend struct EntityAccess;
  struct Impl;
  detail::Shared<const Impl> impl_;
};

/// A JSON checkpoint, of native or of f32 weights. @throws FormatError naming layer, field and
/// bound.
LoomNetwork parse_loom_json(std::string_view json, const ReadLimits& limits = {});
/// The same of a file. @throws IoError, FormatError.
LoomNetwork load_loom_json(const std::filesystem::path& path, const ReadOptions& options = {});

struct LoomSaveOptions {
  OutputOptions output{};
  Work work{};  ///< progress and cancel
  /// JSON only: weights that were never quantised are written with the scale from before, as the
  /// original does. Reading them back gives other weights.
  bool scale_before_morph = false;
};

/// A JSON checkpoint as the original writes it. @throws UsageError for numbers that JSON does not
/// have, and layers that are not a grid's; UnsupportedError for components, which only .entity
/// files have.
std::string loom_json(const LoomNetwork& network, const LoomSaveOptions& options = {});
/// The same into a file, atomically. @return its bytes. @throws also IoError.
std::uint64_t save_loom_json(const std::filesystem::path& path, const LoomNetwork& network,
                             const LoomSaveOptions& options = {});

/// A .entity file as the original writes it; components are written as they are.
/// @throws UsageError for numbers that JSON does not have, and layers that are not a grid's;
/// FormatError (inconsistent) for an RMSNorm with fewer weights than it counts.
std::vector<std::byte> entity_bytes(const LoomNetwork& network);
/// The same into a file, atomically. @return its bytes. @throws also IoError.
std::uint64_t save_entity(const std::filesystem::path& path, const LoomNetwork& network,
                          const LoomSaveOptions& options = {});

// The two block formats in .entity files of transformers: Q4_0 and BitNet's packed ternary.
// docs/format/loom.md, "Blocks".

/// Blocks of 32 weights with one f32 scale each, the greatest weight over 7. @throws UsageError
/// (bad_argument) for more than 2^32 - 1 blocks or words.
std::vector<std::byte> encode_loom_q4_0(std::span<const float> weights);
/// Blocks of a blob. @throws FormatError (truncated, inconsistent).
std::uint64_t loom_q4_0_blocks(ByteSpan blob);
/// The weights of all blocks, 32 each, or the first `count` of them; what was padded is 0.
/// @throws FormatError (truncated, inconsistent, limit_exceeded); UsageError (size_mismatch) for a
/// count of more than there are.
std::vector<float> decode_loom_q4_0(ByteSpan blob, std::optional<std::uint64_t> count = {},
                                    const ReadLimits& limits = {});

/// A matrix of -1, 0 and +1 with one scale.
struct LoomBitNet {
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  std::uint32_t offset = 0;  ///< of its weights among the f32 weights of the layer
  float scale = 0;
};
/// @param values rows x cols of -1, 0 and 1, row-major. @throws UsageError (size_mismatch,
/// bad_argument).
std::vector<std::byte> encode_loom_bitnet(const LoomBitNet& matrix,
                                          std::span<const std::int8_t> values);
/// @throws FormatError (truncated, inconsistent).
LoomBitNet loom_bitnet_facts(ByteSpan blob);
/// rows x cols weights, row-major: values times scale. @throws FormatError (truncated,
/// inconsistent, bad_value, limit_exceeded).
std::vector<float> decode_loom_bitnet(ByteSpan blob, const ReadLimits& limits = {});

}  // namespace thalia
