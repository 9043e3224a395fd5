// Folders are looked through by name alone; what is in a file shows when it is opened.
#include "formats/safetensors/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "formats/source/list_names.h"
#include "formats/source/part_name.h"
#include "io/folder/folder.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/safetensors.h"
#include "thalia/text.h"

namespace thalia::formats::safetensors {
namespace {

constexpr std::string_view kDefaultPrefix = "model";

// Takes all digits off the end.
bool take_digits(std::string_view& text) noexcept {
  const std::size_t end = text.find_last_not_of("0123456789") + 1;
  const bool has_some = end < text.size();
  text = text.substr(0, end);
  return has_some;
}

bool take_text(std::string_view& text, std::string_view end) noexcept {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

// What comes before -00001-of-00002.safetensors.
std::optional<std::string_view> shard_prefix(std::string_view name, ShardKind kind) noexcept {
  const auto part = part_name(name);
  if (!part || part->extension != file_suffix(kind)) return std::nullopt;
  return part->prefix;
}

std::filesystem::path only(const io::Folder& folder, std::vector<std::string> names) {
  if (names.size() == 1) return folder.path() / names.front();
  std::ranges::sort(names);
  throw UsageError(ErrorCode::bad_argument, "the folder has several models, name one of them",
                   {.path = folder.path().string(), .value = list_names(names)});
}

// A link that leads nowhere counts: what it stood for must not become another model in silence.
std::optional<std::filesystem::path> usual_in(const io::Folder& folder,
                                              const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto facts = folder.facts(name);
    if (facts && facts->kind != io::EntryKind::folder) return folder.path() / name;
  }
  return std::nullopt;
}

// nullopt where the folder has no safetensors file.
std::optional<std::filesystem::path> other_in(const io::Folder& folder) {
  std::vector<std::string> files, indexes, shards;
  for (const io::FolderEntry& entry : folder.entries()) {
    if (entry.name.starts_with('.')) continue;
    constexpr ShardKind kKind = ShardKind::safetensors;
    const bool is_index = index_prefix(entry.name, kKind).has_value();
    if (!is_index && !entry.name.ends_with(file_suffix(kKind))) continue;
    // Links count as what they lead to: caches of models consist of them.
    if (!is_file(folder.path() / entry.name)) continue;
    (is_index ? indexes : is_shard_name(entry.name, kKind) ? shards : files).push_back(entry.name);
  }
  if (files.size() == 1) return folder.path() / files.front();
  if (!indexes.empty()) return only(folder, std::move(indexes));
  if (!files.empty()) return only(folder, std::move(files));
  if (shards.empty()) return std::nullopt;
  std::ranges::sort(shards);
  throw UsageError(ErrorCode::not_found, "the folder has shards and no index",
                   {.path = folder.path().string(), .value = list_names(shards)});
}

}  // namespace

std::string_view file_suffix(ShardKind kind) noexcept {
  return kind == ShardKind::thalia ? ".thalia" : ".safetensors";
}

std::string file_name(std::string_view prefix, ShardKind kind) {
  return fmt::format("{}{}", prefix, file_suffix(kind));
}

std::string index_name(std::string_view prefix, ShardKind kind) {
  return fmt::format("{}{}.index.json", prefix, file_suffix(kind));
}

// As transformers does, a whole file before an index.
std::vector<std::string> usual_names(std::span<const ShardKind> kinds) {
  std::vector<std::string> names;
  for (const ShardKind kind : kinds) {
    names.push_back(file_name(kDefaultPrefix, kind));
    names.push_back(index_name(kDefaultPrefix, kind));
  }
  return names;
}

bool is_shard_name(std::string_view name, ShardKind kind) noexcept {
  return shard_prefix(name, kind).has_value();
}

std::string shard_name(std::string_view prefix, ShardKind kind, std::uint64_t i,
                       std::uint64_t count, unsigned generation) {
  const std::string_view suffix = file_suffix(kind);
  if (generation == 1) return fmt::format("{}-{:05}-of-{:05}{}", prefix, i, count, suffix);
  return fmt::format("{}-{}-{:05}-of-{:05}{}", prefix, generation, i, count, suffix);
}

bool is_shard_of(std::string_view name, std::string_view prefix, ShardKind kind) noexcept {
  auto found = shard_prefix(name, kind);
  if (!found) return false;
  if (*found == prefix) return true;
  return take_digits(*found) && take_text(*found, "-") && *found == prefix;
}

// Variants are what diffusers writes.
std::optional<std::string> index_prefix(std::string_view name, ShardKind kind) {
  const std::string stem = std::string(file_suffix(kind)) + ".index.";
  const std::size_t middle = name.find(stem);
  if (middle == 0 || middle == std::string_view::npos) return std::nullopt;
  std::string_view variant = name.substr(middle + stem.size());
  if (variant == "json") return std::string(name.substr(0, middle));
  if (!take_text(variant, ".json") || variant.empty()) return std::nullopt;
  return fmt::format("{}.{}", name.substr(0, middle), variant);
}

bool is_index_path(const std::filesystem::path& path) {
  return path.extension() == ".json";
}

std::filesystem::path ModelTarget::file() const {
  return folder / file_name(prefix, kind);
}

ModelTarget model_target(const std::filesystem::path& path, ShardKind kind) {
  const std::string name = path.filename().string();
  ModelTarget target{.kind = kind, .folder = folder_of(path)};
  if (path.empty()) throw UsageError(ErrorCode::bad_argument, "names no folder", {.field = "path"});
  if (!io::Folder::find(path)) {
    for (const ShardKind named : kShardKinds) {
      const std::string_view suffix = file_suffix(named);
      const auto of_index = index_prefix(name, named);
      if (!of_index && (name.size() <= suffix.size() || !name.ends_with(suffix))) continue;
      if (named != kind) {
        fail_argument(ErrorCode::bad_argument, "path", printable(name),
                      fmt::format("a folder, or the name of a {} file or of an index of such files",
                                  file_suffix(kind)));
      }
      target.prefix = of_index ? *of_index : name.substr(0, name.size() - suffix.size());
      target.index_name = of_index ? name : index_name(target.prefix, kind);
      target.is_index_wanted = of_index.has_value();
      return target;
    }
  }
  target.folder = path;
  target.prefix = kDefaultPrefix;
  target.index_name = index_name(target.prefix, kind);
  target.is_folder = true;
  return target;
}

}  // namespace thalia::formats::safetensors

namespace thalia {

std::filesystem::path find_safetensors_model(const std::filesystem::path& path) {
  namespace st = formats::safetensors;
  const auto folder = io::Folder::find(path);
  if (!folder) return path;
  if (const auto found = st::usual_in(*folder, st::usual_names(std::array{ShardKind::safetensors})))
    return *found;
  if (const auto found = st::other_in(*folder)) return *found;
  throw UsageError(ErrorCode::not_found, "the folder has no safetensors file",
                   {.path = path.string()});
}

namespace {

// PyTorch's checkpoints of several ranks are read by its own means alone.
void fail_distributed(const io::Folder& folder, const std::filesystem::path& path) {
  const bool is_ours = folder.facts("checkpoint.json").has_value();
  if (!is_ours && !folder.facts(".metadata")) return;
  throw UnsupportedError(
      ErrorCode::unsupported_feature,
      is_ours ? "a checkpoint of torch.distributed.checkpoint: dcp.load(state, "
                "storage_reader=ThaliaStorageReader(folder)) reads it, and "
                "thalia_checkpoint.dcp.consolidate(folder, out) makes one file of it"
              : "a checkpoint of torch.distributed.checkpoint: dcp.load(state, "
                "storage_reader=FileSystemReader(folder)) reads it, and "
                "dcp.format_utils.dcp_to_torch_save(folder, out) makes one file of it",
      {.path = path.string()});
}

}  // namespace

namespace {

// weight_vNNNNNN, of which the newest counts: docs/format/slime.md.
std::optional<std::filesystem::path> newest_version(const io::Folder& folder) {
  constexpr std::string_view kPrefix = "weight_v";
  constexpr std::size_t kDigits = 6;
  std::string newest;
  for (const io::FolderEntry& entry : folder.entries()) {
    const std::string& name = entry.name;
    if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + kDigits ||
        name.find_first_not_of("0123456789", kPrefix.size()) != std::string::npos)
      continue;
    if (entry.kind != io::EntryKind::folder && !io::Folder::find(folder.path() / name)) continue;
    if (std::pair(name.size(), name) > std::pair(newest.size(), newest)) newest = name;
  }
  if (newest.empty()) return std::nullopt;
  return folder.path() / newest;
}

}  // namespace

bool formats::safetensors::is_folder_of_patches(const std::filesystem::path& path) {
  const auto deltas = io::Folder::find(path / "deltas");
  if (!deltas) return false;
  return std::ranges::any_of(deltas->entries(), [](const io::FolderEntry& entry) {
    return entry.name.starts_with("step_") && entry.name.ends_with(".safetensors");
  });
}

std::filesystem::path find_model(const std::filesystem::path& path) {
  namespace st = formats::safetensors;
  const auto folder = io::Folder::find(path);
  if (!folder) return path;
  // Arrays as mithril lays them out for Orbax: the folder itself is the checkpoint.
  if (folder->facts("_CHECKPOINT_METADATA")) return path;
  if (const auto found = st::usual_in(*folder, st::usual_names())) return *found;
  if (const auto found = st::other_in(*folder)) return *found;
  fail_distributed(*folder, path);
  if (const auto version = newest_version(*folder)) return find_model(*version);
  if (st::is_folder_of_patches(path)) return path;
  throw IoError(fmt::format("search for {} in this folder", fmt::join(st::usual_names(), ", ")),
                ENOENT, {.path = path.string()});
}

}  // namespace thalia
