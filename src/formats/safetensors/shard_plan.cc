// Names are chosen so that no file in the folder has one of them: what is there stays whole until
// the new index has replaced the old one. A model that was taken apart comes back from the index
// that was kept, which is read like that of any model.
#include "formats/safetensors/shard_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/write/sha256_ending.h"
#include "formats/safetensors/index.h"
#include "formats/safetensors/kept_header.h"
#include "io/folder/folder.h"
#include "thalia/error.h"

namespace thalia::formats::safetensors {
namespace {

constexpr std::uint64_t kMostShards = 99'999;  // five digits
constexpr unsigned kMostGenerations = 10'000;

using Shards = std::vector<std::vector<std::size_t>>;

class Planner {
 public:
  Planner(const std::filesystem::path& path, const std::vector<NamedArray>& tensors,
          const PlanOptions& options)
      : target_(model_target(path, options.kind)),
        folder_(io::Folder::find(target_.folder)),
        tensors_(tensors),
        options_(options) {
    check_safetensors_names(tensors);
    check_prefix();
    plan_ = {.kind = options.kind,
             .folder = target_.folder,
             .prefix = target_.prefix,
             .path = target_.index(),
             .files = {}};
  }

  void add_file(const std::vector<std::size_t>& positions, std::string name,
                const std::optional<SafetensorsMetadata>& metadata, const KeptHeader& kept) {
    SafetensorsHeader header = plan_.kind == ShardKind::thalia
                                   ? thalia_header(positions)
                                   : safetensors_header(positions, metadata, kept);
    if (__builtin_add_overflow(plan_.data_bytes, header.data_bytes, &plan_.data_bytes))
      fail_total();
    plan_.files.push_back({.name = std::move(name), .header = std::move(header)});
  }

  // Names that nothing in the folder has. @return whether they are `wished`.
  bool name_shards(const std::vector<std::string>& wished) {
    if (!wished.empty() && std::ranges::none_of(wished, [&](auto& name) { return taken(name); })) {
      for (std::size_t i = 0; i < wished.size(); ++i) plan_.files[i].name = wished[i];
      return true;
    }
    const std::uint64_t count = plan_.files.size();
    for (unsigned generation = 1; generation <= kMostGenerations; ++generation) {
      bool is_free = true;
      for (std::uint64_t i = 0; i < count && is_free; ++i) {
        plan_.files[i].name = shard_name(plan_.prefix, plan_.kind, i + 1, count, generation);
        is_free = !taken(plan_.files[i].name);
      }
      if (is_free) return false;
    }
    throw UsageError(ErrorCode::bad_argument, "the folder has a file of every name for a shard",
                     {.path = plan_.folder.string(), .value = plan_.files.front().name});
  }

  void write_new_index() {
    std::vector<std::pair<std::string, std::string>> weights;
    weights.reserve(tensors_.size());
    for (const PlannedFile& file : plan_.files)
      for (const std::size_t i : file.header.order)
        weights.emplace_back(tensors_[i].name, file.name);
    plan_.index_text = write_index(std::move(weights), plan_.data_bytes);
  }

  const ModelTarget& target() const { return target_; }
  ModelPlan& plan() { return plan_; }

 private:
  SafetensorsHeader safetensors_header(const std::vector<std::size_t>& positions,
                                       const std::optional<SafetensorsMetadata>& metadata,
                                       const KeptHeader& kept) const {
    std::vector<NamedArray> tensors;
    tensors.reserve(positions.size());
    for (const std::size_t i : positions) {
      tensors.push_back({.name = tensors_[i].name,
                         .dtype = tensors_[i].dtype,
                         .shape = tensors_[i].shape,
                         .bytes = {}});
    }
    SafetensorsHeader header = kept_or_new_header(
        kept, tensors, metadata, options_.max_header_bytes, options_.limits, options_.align);
    for (std::size_t& i : header.order) i = positions[i];
    return header;
  }

  SafetensorsHeader thalia_header(const std::vector<std::size_t>& positions) const {
    SafetensorsHeader header{.bytes = {}, .order = positions};
    for (const std::size_t i : positions) {
      const auto bytes = tensors_[i].shape.byte_length(tensors_[i].dtype);
      if (!bytes || __builtin_add_overflow(header.data_bytes, *bytes, &header.data_bytes))
        fail_total();
    }
    return header;
  }

  [[noreturn]] static void fail_total() {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "the tensors together pass 2^64 - 1 bytes");
  }

  // Names of which the index could not be read again.
  void check_prefix() const {
    const std::string longest =
        shard_name(target_.prefix, target_.kind, kMostShards, kMostShards, kMostGenerations);
    if (is_plain_name(longest, target_.kind) && is_valid_utf8(longest)) return;
    fail_argument(ErrorCode::bad_argument, "path", printable(target_.prefix),
                  "a name that is not hidden, short enough, and UTF-8");
  }
  // A link that leads nowhere is something, too, and so is the checksum of a file that is gone.
  bool taken(const std::string& name) const {
    return folder_ &&
           (folder_->facts(name) || folder_->facts(name + std::string(container::kSha256Ending)));
  }

  ModelTarget target_;
  std::optional<io::Folder> folder_;
  const std::vector<NamedArray>& tensors_;
  const PlanOptions& options_;
  ModelPlan plan_;
};

std::vector<std::uint64_t> sizes_of(const std::vector<NamedArray>& tensors) {
  std::vector<std::uint64_t> sizes;
  // What has no size is refused when its header is made.
  for (const NamedArray& tensor : tensors)
    sizes.push_back(
        tensor.shape.byte_length(tensor.dtype).value_or(std::numeric_limits<std::uint64_t>::max()));
  return sizes;
}

// The tensors of each file of the index; nullopt unless it has exactly these tensors.
std::optional<Shards> match_index(const ModelIndex& index, const std::vector<NamedArray>& tensors) {
  if (index.tensors.size() != tensors.size()) return std::nullopt;
  std::unordered_map<std::string_view, std::size_t> files;
  for (const IndexedTensor& tensor : index.tensors) files.emplace(tensor.name, tensor.file);
  Shards shards(index.files.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto found = files.find(tensors[i].name);
    if (found == files.end()) return std::nullopt;
    shards[found->second].push_back(i);
  }
  return shards;
}

bool is_index_file_name(std::string_view name) {
  return name.size() <= 255 && !name.starts_with('.') &&
         index_prefix(name, ShardKind::safetensors) &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

Shards split_into_shards(std::span<const std::uint64_t> bytes, std::uint64_t max_shard_bytes) {
  Shards shards;
  std::vector<std::size_t> current;
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > max_shard_bytes) {
      shards.push_back({i});
      continue;
    }
    if (bytes[i] > max_shard_bytes - filled) {
      shards.push_back(std::exchange(current, {}));
      filled = 0;
    }
    current.push_back(i);
    filled += bytes[i];
  }
  if (!current.empty() || shards.empty()) shards.push_back(std::move(current));
  return shards;
}

ModelPlan plan_model(const std::filesystem::path& path, const std::vector<NamedArray>& tensors,
                     const std::optional<SafetensorsMetadata>& metadata,
                     const PlanOptions& options) {
  return with_path(path.native(), [&] {
    check_header_alignment(options.align);
    if (options.max_shard_bytes == 0)
      fail_argument(ErrorCode::bad_argument, "max_shard_bytes", "0", "1 or more");
    Planner planner(path, tensors, options);
    const Shards shards = split_into_shards(sizes_of(tensors), options.max_shard_bytes);
    if (shards.size() > kMostShards) {
      fail_argument(ErrorCode::bad_argument, "max_shard_bytes",
                    std::to_string(options.max_shard_bytes),
                    fmt::format("enough for {} shards", kMostShards));
    }
    for (const auto& shard : shards) planner.add_file(shard, {}, metadata, {});
    const std::filesystem::path file = planner.target().file();
    const std::string name = file.filename().string();
    // A file that an older index names may be one of several: it stays until that index is gone.
    const auto older = files_named_by(planner.target().index(), options.kind);
    if (shards.size() == 1 && !planner.target().is_index_wanted &&
        std::ranges::find(older, name) == older.end()) {
      planner.plan().path = file;
      planner.plan().files[0].name = name;
    } else {
      planner.name_shards({});
      planner.write_new_index();
    }
    return std::move(planner.plan());
  });
}

std::optional<ModelPlan> plan_kept_model(const std::filesystem::path& path,
                                         const std::vector<NamedArray>& tensors,
                                         const SafetensorsSourceMetadata& source,
                                         const PlanOptions& options) {
  if (!source.model || !is_index_file_name(source.model->index_name)) return std::nullopt;
  ModelIndex index;
  try {
    index = parse_index(source.model->index_text, options.limits, kMostShards);
  } catch (const FormatError&) {
    return std::nullopt;
  }
  const auto shards = match_index(index, tensors);
  if (!shards || shards->empty()) return std::nullopt;
  return with_path(path.native(), [&] {
    Planner planner(path, tensors, options);
    ModelPlan& plan = planner.plan();
    if (planner.target().is_folder) {
      plan.path = plan.folder / source.model->index_name;
      plan.prefix = index_prefix(source.model->index_name, options.kind).value();
    }
    std::unordered_map<std::string_view, const SourceModelFile*> said;
    for (const SourceModelFile& file : source.model->files) said.emplace(file.name, &file);
    for (std::size_t f = 0; f < shards->size(); ++f) {
      const auto found = said.find(index.files[f]);
      const bool is_said = found != said.end();
      planner.add_file((*shards)[f], {}, is_said ? found->second->metadata : source.metadata,
                       is_said ? found->second->header : KeptHeader());
    }
    if (planner.name_shards(index.files)) {
      // Some programs count otherwise; who has converted tensors meanwhile has made it wrong.
      const auto counted =
          source.model->tensor_bytes ? source.model->tensor_bytes : index.total_size;
      plan.index_text = counted && index.total_size && *counted != plan.data_bytes
                            ? with_total_size(source.model->index_text, plan.data_bytes)
                            : source.model->index_text;
    } else {
      planner.write_new_index();
    }
    return std::optional(std::move(plan));
  });
}

}  // namespace thalia::formats::safetensors
