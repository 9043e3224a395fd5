// What a model will consist of, before anything of it is written: which tensors are in which file,
// the headers, the index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/safetensors/header.h"
#include "formats/safetensors/place.h"
#include "formats/safetensors/source_metadata.h"
#include "thalia/formats/safetensors.h"
#include "thalia/options.h"

namespace thalia::formats::safetensors {

struct PlannedFile {
  std::string name;
  /// Its order: positions in all tensors of the model. The header of a .thalia file has no bytes.
  SafetensorsHeader header;
};

struct ModelPlan {
  ShardKind kind = ShardKind::safetensors;
  std::filesystem::path folder;
  std::string prefix;          ///< of the names of the model's files
  std::filesystem::path path;  ///< of the index, or of the only file
  std::vector<PlannedFile> files;
  std::optional<std::string> index_text{};  ///< nullopt: one file without an index
  std::uint64_t data_bytes = 0;             ///< of all tensors
  /// It takes the place of any model that the folder has, of either kind.
  bool is_whole_folder = false;
};

struct PlanOptions {
  ShardKind kind = ShardKind::safetensors;
  std::uint64_t max_shard_bytes = 0;
  std::uint64_t align = 8;
  std::uint64_t max_header_bytes = 0;
  ReadLimits limits{};
};

/// The tensors of each shard, as positions: in order, a new shard where the next does not fit, and
/// one of its own, before the shard that is being filled, for what is larger than a shard. This is
/// what huggingface_hub's split_torch_state_dict_into_shards() does.
std::vector<std::vector<std::size_t>> split_into_shards(std::span<const std::uint64_t> bytes,
                                                        std::uint64_t max_shard_bytes);

/// As save_model(). @throws as that, before anything is written.
ModelPlan plan_model(const std::filesystem::path& path, const std::vector<NamedArray>& tensors,
                     const std::optional<SafetensorsMetadata>& metadata,
                     const PlanOptions& options);

/// The model that the source metadata remember, for the same tensors; nullopt if there is none, or
/// the tensors are others.
std::optional<ModelPlan> plan_kept_model(const std::filesystem::path& path,
                                         const std::vector<NamedArray>& tensors,
                                         const SafetensorsSourceMetadata& source,
                                         const PlanOptions& options);

}  // namespace thalia::formats::safetensors
