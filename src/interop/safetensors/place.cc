// Folders are looked through by name alone; what is in a file shows when it is opened.
#include "interop/safetensors/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "base/fail.h"
#include "interop/shared/list_names.h"
#include "io/folder/folder.h"
#include "thalia/error.h"
#include "thalia/formats/safetensors_model.h"
#include "thalia/paths.h"
#include "thalia/text.h"

namespace thalia::interop::safetensors {
namespace {

constexpr std::string_view kDefaultPrefix = "model";

// Takes `count` digits, or all there are for 0, off the end.
bool take_digits(std::string_view& text, std::size_t count) noexcept {
  std::size_t digits = 0;
  while (digits < text.size() && text[text.size() - 1 - digits] >= '0' &&
         text[text.size() - 1 - digits] <= '9')
    ++digits;
  if (digits == 0 || digits < count) return false;
  text.remove_suffix(digits);
  return true;
}

bool take_text(std::string_view& text, std::string_view end) noexcept {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

// What stands in front of -00001-of-00002.safetensors.
std::optional<std::string_view> shard_prefix(std::string_view name) noexcept {
  if (take_text(name, kFileSuffix) && take_digits(name, 5) && take_text(name, "-of-") &&
      take_digits(name, 5) && take_text(name, "-") && !name.empty())
    return name;
  return std::nullopt;
}

std::filesystem::path only(const io::Folder& folder, std::vector<std::string> names) {
  if (names.size() == 1) return folder.path() / names.front();
  std::ranges::sort(names);
  throw UsageError(ErrorCode::bad_argument, "the folder has several models, name one of them",
                   {.path = folder.path().string(), .value = list_names(names)});
}

std::filesystem::path find_in(const io::Folder& folder) {
  for (const char* const usual : {"model.safetensors.index.json", "model.safetensors"})
    if (is_file(folder.path() / usual)) return folder.path() / usual;
  std::vector<std::string> files, indexes, shards;
  for (const io::FolderEntry& entry : folder.entries()) {
    if (entry.name.starts_with('.')) continue;
    const bool is_index = index_prefix(entry.name).has_value();
    if (!is_index && !entry.name.ends_with(kFileSuffix)) continue;
    // Links count as what they lead to: caches of models consist of them.
    if (!is_file(folder.path() / entry.name)) continue;
    (is_index ? indexes : is_shard_name(entry.name) ? shards : files).push_back(entry.name);
  }
  if (files.size() == 1) return folder.path() / files.front();
  if (!indexes.empty()) return only(folder, std::move(indexes));
  if (!files.empty()) return only(folder, std::move(files));
  if (shards.empty()) {
    throw UsageError(ErrorCode::not_found, "the folder has no safetensors file",
                     {.path = folder.path().string()});
  }
  std::ranges::sort(shards);
  throw UsageError(ErrorCode::not_found, "the folder has shards and no index",
                   {.path = folder.path().string(), .value = list_names(shards)});
}

}  // namespace

bool is_shard_name(std::string_view name) noexcept {
  return shard_prefix(name).has_value();
}

std::string shard_name(std::string_view prefix, std::uint64_t i, std::uint64_t count,
                       unsigned generation) {
  if (generation == 1) return fmt::format("{}-{:05}-of-{:05}{}", prefix, i, count, kFileSuffix);
  return fmt::format("{}-{}-{:05}-of-{:05}{}", prefix, generation, i, count, kFileSuffix);
}

bool is_shard_of(std::string_view name, std::string_view prefix) noexcept {
  auto found = shard_prefix(name);
  if (!found) return false;
  if (*found == prefix) return true;
  return take_digits(*found, 0) && take_text(*found, "-") && *found == prefix;
}

// Variants are what diffusers writes.
std::optional<std::string> index_prefix(std::string_view name) {
  constexpr std::string_view kMiddle = ".safetensors.index.";
  const std::size_t middle = name.find(kMiddle);
  if (middle == 0 || middle == std::string_view::npos) return std::nullopt;
  std::string_view variant = name.substr(middle + kMiddle.size());
  if (variant == "json") return std::string(name.substr(0, middle));
  if (!take_text(variant, ".json") || variant.empty()) return std::nullopt;
  return fmt::format("{}.{}", name.substr(0, middle), variant);
}

bool is_index_path(const std::filesystem::path& path) {
  return path.extension() == ".json";
}

std::filesystem::path ModelTarget::file() const {
  return folder / (prefix + std::string(kFileSuffix));
}

ModelTarget model_target(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  ModelTarget target{.folder = folder_of(path)};
  const bool is_folder = io::Folder::find(path).has_value();
  const auto prefix = index_prefix(name);
  if (!is_folder && prefix) {
    target.prefix = *prefix;
    target.index_name = name;
    target.is_index_wanted = true;
    return target;
  }
  if (!is_folder && name.size() > kFileSuffix.size() && name.ends_with(kFileSuffix)) {
    target.prefix = name.substr(0, name.size() - kFileSuffix.size());
  } else if (path.empty()) {
    throw UsageError(ErrorCode::bad_argument, "names no folder", {.field = "path"});
  } else {
    target = {.folder = path, .prefix = std::string(kDefaultPrefix), .is_folder = true};
  }
  target.index_name = target.prefix + std::string(kIndexSuffix);
  return target;
}

}  // namespace thalia::interop::safetensors

namespace thalia {

std::filesystem::path find_safetensors_model(const std::filesystem::path& path) {
  const auto folder = io::Folder::find(path);
  return folder ? interop::safetensors::find_in(*folder) : path;
}

}  // namespace thalia
