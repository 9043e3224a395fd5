// A model in several files, and the one file that opens the model in a folder. The index tells
// which tensor lies in which file. docs/format/safetensors.md, "Models of several files".
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thalia/options.h"

namespace thalia {

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

/// Holds what one file has against the index. @param tensors all names that are in the file.
/// @throws FormatError (inconsistent) with `path`, that of the index, and the tensors: those that
/// the index places there and the file lacks, or that the file has and the index places elsewhere
/// or lacks.
void check_model_file(const ModelIndex& index, const std::filesystem::path& path, std::size_t file,
                      std::span<const std::string> tensors);

/// Which file opening this path begins with: the path itself if it is no folder, or a folder
/// that is one checkpoint of another format. Of another folder the first of model.thalia,
/// model.thalia.index.json, model.safetensors and model.safetensors.index.json that is there, or
/// else what find_safetensors_model() finds. So a whole file comes before an index, as transformers
/// has it. @throws IoError, and where the folder has none of these; UsageError (bad_argument) where
/// it has several models of other names, (not_found) if it has parts of one without the index.
std::filesystem::path find_model(const std::filesystem::path& path);

}  // namespace thalia
