// The folder of a version gets its file of tensors first and its index last, so that who looks for
// the index finds a whole version.
#include <fmt/format.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/weight_sync/byte_change.h"
#include "formats/weight_sync/output_folder.h"
#include "formats/weight_sync/slime_index.h"
#include "formats/weight_sync/weight_writers.h"
#include "io/folder/folder.h"
#include "io/output/atomic_file.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats {
namespace weight_sync {
namespace {

using Path = std::filesystem::path;

constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kFile = "model-00000-of-00001.safetensors";

struct Change {
  std::vector<std::byte> frame{};
  std::string checksum{};
  std::uint64_t changed = 0;
};

std::uint64_t version_of(const Path& folder) {
  constexpr std::string_view kPrefix = "weight_v";
  std::string name = folder.filename().string();
  if (name.empty()) name = folder.parent_path().filename().string();
  const auto number = name.starts_with(kPrefix)
                          ? whole_number(std::string_view(name).substr(kPrefix.size()))
                          : std::nullopt;
  if (!number || *number == 0 || name != version_folder(*number)) {
    fail_argument(ErrorCode::bad_argument, "output", printable(name),
                  "weight_vNNNNNN, from weight_v000001 on: the version");
  }
  return *number;
}

// slime takes every safetensors file of the folder as one of the version.
void check_folder(const Path& path) {
  const auto folder = io::Folder::find(path);
  if (!folder) return;
  for (const io::FolderEntry& entry : folder->entries()) {
    if (entry.name == kIndex || entry.name == kFile || !entry.name.ends_with(".safetensors"))
      continue;
    io::fail_exists(path / entry.name);
  }
}

}  // namespace
}  // namespace weight_sync

WeightDeltaResult write_slime_delta(const OpenedFile& base, const OpenedFile& next,
                                    const std::filesystem::path& folder,
                                    const WeightDeltaOptions& options) {
  using namespace weight_sync;
  WeightDeltaResult result;
  result.version = version_of(folder);
  const SlimeIndex index{.version = result.version,
                         .base_version = result.version - 1,
                         .encoding = byte_encoding(options.encoding),
                         .checksum = byte_checksum(options.checksum)};
  check_folder(folder);
  std::vector<Change> changes(next.tensor_count());
  std::atomic<std::uint64_t> bytes = 0;
  compare_models(base, next, options.work, [&](std::size_t i, ByteSpan before, ByteSpan after) {
    bytes += after.size();
    Change& change = changes[i];
    change.changed = encode_bytes(index.encoding, before, after, change.frame);
    if (change.changed != 0) change.checksum = checksum_text(index.checksum, after);
  });
  result.tensors = changes.size();
  result.elements = bytes;
  std::vector<NamedArray> arrays;
  std::vector<std::string> names;
  SafetensorsMetadata checksums;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (changes[i].changed == 0) continue;
    result.changed_elements += changes[i].changed;
    const std::string& name = names.emplace_back(next.stored(i).name);
    arrays.push_back({.name = name,
                      .dtype = DType::u8,
                      .shape = Shape{changes[i].frame.size()},
                      .bytes = changes[i].frame});
    checksums.emplace_back(name, std::move(changes[i].checksum));
  }
  result.changed_tensors = names.size();
  io::MadeFolders made(folder, options.output.durability);
  remove_older(folder, {kIndex, kFile}, options.output.replace);
  if (!arrays.empty()) {
    result.file_bytes =
        save_safetensors(folder / kFile, std::move(arrays), checksums, options.output);
  }
  result.file_bytes += write_text(folder / kIndex, write_slime_index(index, names, kFile),
                                  options.output, options.work);
  made.keep();
  return result;
}

}  // namespace thalia::formats
