// Where a model lies, and what its files are called.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/safetensors.h"

namespace thalia::formats::safetensors {

inline constexpr std::array kShardKinds{ShardKind::thalia, ShardKind::safetensors};

/// ".thalia", with which the names of such files end.
std::string_view file_suffix(ShardKind kind) noexcept;
/// NAME.thalia, and the index beside which the shards of NAME lie, NAME.thalia.index.json.
std::string file_name(std::string_view prefix, ShardKind kind);
std::string index_name(std::string_view prefix, ShardKind kind);
/// What a folder opens as, the first that is there: model.thalia, model.thalia.index.json, and the
/// same of safetensors. Only those of some kinds.
std::vector<std::string> usual_names(std::span<const ShardKind> kinds = kShardKinds);

/// True of NAME-00001-of-00002.safetensors: a part of a model, useless without its index.
bool is_shard_name(std::string_view name, ShardKind kind) noexcept;
/// The name of shard i of `count`, from 1 on; `generation` from 2 on follows the prefix.
std::string shard_name(std::string_view prefix, ShardKind kind, std::uint64_t i,
                       std::uint64_t count, unsigned generation = 1);
/// True of a name that shard_name() gives for this prefix.
bool is_shard_of(std::string_view name, std::string_view prefix, ShardKind kind) noexcept;

/// What the files of an index are named after: "x" of x.safetensors.index.json, "x.fp16" of the
/// variant x.safetensors.index.fp16.json. nullopt of a name that is no index's of this kind.
std::optional<std::string> index_prefix(std::string_view name, ShardKind kind);
/// Whether the folder holds deltas of TRL's, and is opened as one checkpoint: docs/format/trl.md.
bool is_folder_of_patches(const std::filesystem::path& path);
/// True of a path that names an index: *.json.
bool is_index_path(const std::filesystem::path& path);

/// Where a model is to be written.
struct ModelTarget {
  ShardKind kind = ShardKind::safetensors;
  std::filesystem::path folder;
  std::string prefix;  ///< of the names of all its files
  std::string index_name;
  bool is_index_wanted = false;  ///< the path names the index
  bool is_folder = false;        ///< the path names the folder
  std::filesystem::path index() const { return folder / index_name; }
  std::filesystem::path file() const;  ///< where the model needs only one
};
/// As save_model(). @throws UsageError (bad_argument) where the path has no name, or that of a file
/// or an index of another kind.
ModelTarget model_target(const std::filesystem::path& path, ShardKind kind);

}  // namespace thalia::formats::safetensors
