// TRL's deltas, from the one that is opened down to an anchor, or to a model that is given.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/safetensors/opened_model.h"
#include "formats/weight_sync/element_change.h"
#include "formats/weight_sync/opened_weights.h"
#include "formats/weight_sync/patched_model.h"
#include "formats/weight_sync/trl_metadata.h"
#include "io/folder/folder.h"
#include "io/path/base_file.h"
#include "thalia/files.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats {
namespace weight_sync {
namespace {

using Path = std::filesystem::path;
using safetensors::ModelFile;
using safetensors::OpenedModel;

class TrlDelta final : public WeightPatch {
 public:
  explicit TrlDelta(OpenedModel model) : model_(std::move(model)) {
    const ModelFile& file = model_.files.front();
    with_path(file.path.native(), [&] {
      metadata_ = parse_trl_metadata(file.parsed.metadata.value_or(SafetensorsMetadata{}));
      add_tensors(file);
    });
  }

  std::uint64_t version() const noexcept { return metadata_.version; }

  std::vector<Path> files() const override { return {model_.path}; }
  std::uint64_t file_bytes() const override { return model_.files.front().bytes->bytes().size(); }
  std::vector<std::string_view> tensors() const override {
    std::vector<std::string_view> names;
    for (const auto& [name, change] : changes_) names.push_back(name);
    return names;
  }
  bool changes(std::string_view tensor) const override { return changes_.contains(tensor); }

  void apply(std::string_view tensor, DType dtype, MutableByteSpan state,
             io::MemoryBudget& /*budget*/) const override {
    const Change& change = changes_.at(tensor);
    const ModelFile& file = model_.files.front();
    apply_elements(metadata_.encoding, safetensors::tensor_of(file, *change.positions),
                   safetensors::tensor_of(file, *change.values), dtype, state);
  }

 private:
  struct Change {
    const NamedArray* positions = nullptr;
    const NamedArray* values = nullptr;
  };

  void add_tensors(const ModelFile& file) {
    for (const NamedArray& tensor : file.parsed.tensors) {
      const std::string_view name = tensor.name;
      if (name.ends_with(metadata_.positions)) {
        changes_[name.substr(0, name.size() - metadata_.positions.size())].positions = &tensor;
      } else if (name.ends_with(metadata_.values)) {
        changes_[name.substr(0, name.size() - metadata_.values.size())].values = &tensor;
      } else {
        throw FormatError(ErrorCode::bad_name, "neither positions nor values of a tensor",
                          {.section = "delta", .tensor = printable(name)});
      }
    }
    for (const auto& [name, change] : changes_) {
      if (change.positions != nullptr && change.values != nullptr) continue;
      throw FormatError(ErrorCode::inconsistent,
                        change.positions == nullptr ? "values without their positions"
                                                    : "positions without their values",
                        {.section = "delta", .tensor = printable(name)});
    }
  }

  OpenedModel model_;
  TrlMetadata metadata_;
  std::unordered_map<std::string_view, Change> changes_;
};

std::unique_ptr<const TrlDelta> open_trl(const io::InputFile& input, const OpenOptions& options) {
  OpenedModel model = safetensors::open_model(
      input, {.chain = options.chain, .max_header_bytes = options.max_safetensors_header_bytes});
  if (model.index_text) {
    throw FormatError(ErrorCode::bad_value, "an index, and no delta of TRL's",
                      {.path = input.path().string()});
  }
  return std::make_unique<const TrlDelta>(std::move(model));
}

// Another file of the folder, which the caller did not name.
std::unique_ptr<const TrlDelta> open_other(const Path& path, const OpenOptions& options) {
  io::BaseFile found = io::open_base(path, options.chain.read.input.access, options.chain.bases);
  if (found.bytes) return open_trl(io::InputFile(std::move(found.bytes)), options);
  const ErrorContext context{.path = path.string()};
  if (found.reason.empty()) throw IoError("open of a delta", ENOENT, context);
  throw FormatError(ErrorCode::bad_value, "a delta of the same folder: " + found.reason, context);
}

using Steps = std::map<std::uint64_t, Path>;

Steps steps_in(const Path& path) {
  Steps steps;
  const auto folder = io::Folder::find(path);
  if (!folder) return steps;
  for (const io::FolderEntry& entry : folder->entries()) {
    const auto number = trl_step(entry.name);
    if (!number) continue;
    const auto [other, is_new] = steps.emplace(*number, path / entry.name);
    if (is_new) continue;
    // step_1 and step_000001: either may be the right one.
    throw FormatError(ErrorCode::inconsistent, "two files are of one version",
                      {.path = (path / entry.name).string(),
                       .field = "name",
                       .value = printable(entry.name),
                       .bound = printable(other->second.filename().string())});
  }
  return steps;
}

// The order of the names is that of the versions, if each file has the version that its name says.
void check_version(const TrlDelta& delta, std::uint64_t number) {
  if (delta.version() == number) return;
  throw FormatError(ErrorCode::inconsistent, "another version than its name says",
                    {.path = delta.files().front().string(),
                     .section = "metadata",
                     .field = "model_version",
                     .value = std::to_string(delta.version()),
                     .bound = std::to_string(number)});
}

// The first model that a folder to search has.
Path model_to_change(const Path& delta, const OpenOptions& options) {
  for (const Path& folder : options.chain.search) {
    try {
      if (io::Folder::find(folder)) return find_safetensors_model(folder);
    } catch (const UsageError& error) {
      if (error.code() != ErrorCode::not_found) throw;
    }
  }
  throw IoError(
      "search for the model that the delta changes", ENOENT,
      {.path = delta.string(), .bound = "an anchor beside it, or a model in a folder to search"});
}

}  // namespace
}  // namespace weight_sync

std::shared_ptr<const OpenedFile> open_trl_delta(const io::InputFile& input,
                                                 const OpenOptions& options) {
  using namespace weight_sync;
  Path root;
  std::optional<std::uint64_t> newest;
  Steps deltas;
  std::unique_ptr<const TrlDelta> opened;
  if (io::Folder::find(input.path())) {
    root = input.path();
    deltas = steps_in(root / kTrlDeltas);
  } else {
    opened = open_trl(input, options);
    const Path folder = named_folder(input.path());
    newest = trl_step(input.path().filename().string()).value_or(opened->version());
    check_version(*opened, *newest);
    if (folder.filename() == kTrlDeltas) {
      root = folder.parent_path();
      deltas = steps_in(folder);
    }
  }
  const Steps anchors = root.empty() ? Steps{} : steps_in(root / kTrlAnchors);
  const auto above = newest ? anchors.upper_bound(*newest) : anchors.end();
  Path model;
  if (above != anchors.begin()) {
    const auto& [number, path] = *std::prev(above);
    model = path;
    deltas.erase(deltas.begin(), deltas.upper_bound(number));
  } else {
    model = model_to_change(opened ? input.path() : root, options);
  }
  if (newest) deltas.erase(deltas.lower_bound(*newest), deltas.end());
  const std::size_t depth = deltas.size() + (opened ? 1 : 0);
  if (depth > options.chain.max_depth)
    fail_limit("chain", "max_depth", depth, options.chain.max_depth);
  WeightPatches patches;
  for (const auto& [number, path] : deltas) {
    auto delta = open_other(path, options);
    check_version(*delta, number);
    patches.push_back(std::move(delta));
  }
  if (opened) patches.push_back(std::move(opened));
  return patched_model(open_based_on(model, options), std::move(patches), options);
}

}  // namespace thalia::formats
