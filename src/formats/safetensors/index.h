// The index of a model in several files, NAME.safetensors.index.json, or NAME.thalia.index.json:
//   {"metadata": {"total_size": 10}, "weight_map": {"a": "model-00001-of-00002.safetensors", …}}
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file/file_bytes.h"
#include "thalia/formats/safetensors.h"
#include "thalia/options.h"

namespace thalia::formats::safetensors {

/// @param max_files of the model. @throws FormatError naming the tensor and the file: (bad_name)
/// for one that is_plain_name() refuses, (inconsistent) for a tensor that is there twice,
/// (limit_exceeded). @param only files of this kind are allowed; nullopt: of either.
ModelIndex parse_index(std::string_view text, const ReadLimits& limits, std::uint64_t max_files,
                       std::optional<ShardKind> only = ShardKind::safetensors);

/// True of a name that a file of an index may have: it ends as files of the kind do, has no '/',
/// '\\' or control character, is not hidden, and fits a folder. So no index leads out of its
/// folder, nor to a file of another kind.
bool is_plain_name(std::string_view name, ShardKind kind = ShardKind::safetensors) noexcept;

/// The text with another total_size, for tensors of other types; as it is if it has none.
std::string with_total_size(std::string text, std::uint64_t total_size);

/// The files of this kind that an index names; none if there is no index there, or it cannot be
/// read.
std::vector<std::string> files_named_by(const std::filesystem::path& index, ShardKind kind);
/// A text file, whole. @throws IoError, UsageError, FormatError (limit_exceeded).
std::string read_text(const std::filesystem::path& path, const ReadLimits& limits = {});
/// read_model_index() of an open file.
ModelIndex read_index(const io::FileBytes& file, const ReadLimits& limits);

/// Byte for byte as transformers does it: json.dumps(…, indent=2, sort_keys=True) and a line end.
/// @param weights names of tensors and files, in any order.
std::string write_index(std::vector<std::pair<std::string, std::string>> weights,
                        std::uint64_t total_size);

}  // namespace thalia::formats::safetensors
