// A chain of slime's versions, from the one that is opened down to a full model.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/safetensors/opened_model.h"
#include "formats/weight_sync/byte_change.h"
#include "formats/weight_sync/opened_weights.h"
#include "formats/weight_sync/patched_model.h"
#include "formats/weight_sync/slime_index.h"
#include "io/path/base_file.h"
#include "thalia/files.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats {
namespace weight_sync {
namespace {

using Path = std::filesystem::path;
using safetensors::ModelFile;
using safetensors::OpenedModel;

SafetensorsModelOptions model_options(const OpenOptions& options) {
  return {.chain = options.chain, .max_header_bytes = options.max_safetensors_header_bytes};
}

class SlimeDelta final : public WeightPatch {
 public:
  SlimeDelta(OpenedModel model, const SlimeIndex& index) : model_(std::move(model)), index_(index) {
    for (const ModelFile& file : model_.files)
      with_path(file.path.native(), [&] { add_file(file); });
  }

  const SlimeIndex& index() const noexcept { return index_; }

  std::vector<Path> files() const override {
    std::vector<Path> files{model_.path};
    for (const ModelFile& file : model_.files) files.push_back(file.path);
    return files;
  }
  std::uint64_t file_bytes() const override {
    std::uint64_t bytes = model_.index_text->size();
    for (const ModelFile& file : model_.files) bytes += file.bytes->bytes().size();
    return bytes;
  }
  std::vector<std::string_view> tensors() const override {
    std::vector<std::string_view> names;
    for (const auto& [name, change] : changes_) names.push_back(name);
    return names;
  }
  bool changes(std::string_view tensor) const override { return changes_.contains(tensor); }
  std::string_view checksum() const override { return checksum_name(index_.checksum); }

  void apply(std::string_view tensor, DType /*dtype*/, MutableByteSpan state,
             io::MemoryBudget& budget) const override {
    const Change& change = changes_.at(tensor);
    const Tensor frame = safetensors::tensor_of(*change.file, *change.tensor);
    apply_bytes(index_.encoding, frame.bytes(), state, budget);
    std::string found = checksum_text(index_.checksum, state);
    if (found == change.checksum) return;
    throw IntegrityError(ErrorCode::checksum_mismatch,
                         "the delta is damaged, or was taken against other weights",
                         {.section = "delta",
                          .field = std::string(checksum_name(index_.checksum)),
                          .value = std::move(found),
                          .bound = printable(change.checksum)});
  }

 private:
  struct Change {
    const ModelFile* file;
    const NamedArray* tensor;
    std::string_view checksum;
  };

  void add_file(const ModelFile& file) {
    std::unordered_map<std::string_view, std::string_view> checksums;
    if (file.parsed.metadata)
      for (const auto& [name, text] : *file.parsed.metadata) checksums.emplace(name, text);
    for (const NamedArray& tensor : file.parsed.tensors) {
      const auto checksum = checksums.find(tensor.name);
      const auto refuse = [&](std::string field, std::string value, std::string bound) {
        throw FormatError(ErrorCode::bad_value, "",
                          {.section = "delta",
                           .field = std::move(field),
                           .tensor = printable(tensor.name),
                           .value = std::move(value),
                           .bound = std::move(bound)});
      };
      if (tensor.dtype != DType::u8) refuse("dtype", std::string(dtype_name(tensor.dtype)), "u8");
      if (tensor.shape.rank() != 1) refuse("shape", tensor.shape.to_string(), "one dimension");
      if (checksum == checksums.end()) refuse("__metadata__", "none", "a checksum of the tensor");
      changes_.emplace(tensor.name,
                       Change{.file = &file, .tensor = &tensor, .checksum = checksum->second});
    }
  }

  OpenedModel model_;
  SlimeIndex index_;
  std::unordered_map<std::string_view, Change> changes_;
};

// What is at the path of a version: a delta, or the folder of a full model.
struct Version {
  std::unique_ptr<const SlimeDelta> delta{};
  Path full{};
};

std::unique_ptr<const SlimeDelta> open_slime(const io::InputFile& input,
                                             const OpenOptions& options) {
  OpenedModel model = safetensors::open_model(input, model_options(options));
  const unsigned depth = options.chain.read.input.limits.max_json_depth;
  const auto index = with_path(model.path.native(),
                               [&] { return parse_slime_index(model.index.metadata, depth); });
  if (!index) return nullptr;
  return std::make_unique<const SlimeDelta>(std::move(model), *index);
}

std::optional<Version> version_in(const Path& folder, const OpenOptions& options) {
  const ChainOptions& chain = options.chain;
  Path index;
  try {
    index = find_safetensors_model(folder);
  } catch (const UsageError& error) {
    if (error.code() != ErrorCode::not_found) throw;
    return std::nullopt;
  }
  if (index == folder) return std::nullopt;  // no folder
  if (index.extension() != ".json") return Version{.full = folder};
  io::BaseFile found = io::open_base(index, chain.read.input.access, chain.bases);
  if (!found.bytes) {
    if (found.reason.empty()) return std::nullopt;
    throw FormatError(ErrorCode::bad_value, "the version that a delta is based on: " + found.reason,
                      {.path = index.string()});
  }
  const ModelIndex content = safetensors::read_index(*found.bytes, chain.read.input.limits);
  const bool is_delta = with_path(index.native(), [&] {
    return parse_slime_index(content.metadata, chain.read.input.limits.max_json_depth).has_value();
  });
  if (!is_delta) return Version{.full = folder};
  return Version{.delta = open_slime(io::InputFile(std::move(found.bytes)), options)};
}

[[noreturn]] void fail_missing(const SlimeDelta& delta, const std::vector<Path>& places) {
  std::string names;
  for (const Path& place : places)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", place.string());
  throw IoError("search for the version that the delta is based on", ENOENT,
                {.path = delta.files().front().string(),
                 .section = "index",
                 .field = "metadata.base_version",
                 .value = std::to_string(delta.index().base_version),
                 .bound = "one of " + names});
}

Version base_of(const SlimeDelta& delta, const OpenOptions& options) {
  const std::uint64_t number = delta.index().base_version;
  const std::string name = version_folder(number);
  std::vector<Path> places{named_folder(delta.files().front()).parent_path() / name};
  for (const Path& folder : options.chain.search) {
    places.push_back(folder / name);
    if (number == 0) places.push_back(folder);
  }
  for (const Path& place : places) {
    auto version = version_in(place, options);
    if (!version) continue;
    if (version->delta && version->delta->index().version != number) {
      throw FormatError(ErrorCode::inconsistent, "another version than its folder says",
                        {.path = version->delta->files().front().string(),
                         .section = "index",
                         .field = "metadata.version",
                         .value = std::to_string(version->delta->index().version),
                         .bound = std::to_string(number)});
    }
    return std::move(*version);
  }
  fail_missing(delta, places);
}

}  // namespace
}  // namespace weight_sync

std::shared_ptr<const OpenedFile> open_slime_delta(const io::InputFile& input,
                                                   const OpenOptions& options) {
  using namespace weight_sync;
  auto delta = open_slime(input, options);
  if (!delta) {
    throw FormatError(ErrorCode::bad_value, "the index is that of a full model, not of a delta",
                      {.path = input.path().string(),
                       .section = "index",
                       .field = "metadata",
                       .bound = "delta_encoding"});
  }
  WeightPatches patches;
  Path full;
  while (delta) {
    if (patches.size() == options.chain.max_depth)
      fail_limit("chain", "max_depth", patches.size() + 1, options.chain.max_depth);
    Version base = base_of(*delta, options);
    patches.push_back(std::move(delta));
    delta = std::move(base.delta);
    full = std::move(base.full);
  }
  std::ranges::reverse(patches);
  return patched_model(open_based_on(full, options), std::move(patches), options);
}

}  // namespace thalia::formats
