#include "formats/safetensors/index_match.h"

#include <fmt/format.h>

#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "formats/source/list_names.h"
#include "thalia/text.h"

namespace thalia::formats::safetensors {

std::vector<Mismatch> compare_with_index(const ModelIndex& index,
                                         std::span<const ShardContent> files) {
  std::vector<Mismatch> found;
  std::unordered_map<std::string_view, std::size_t> listed, held;
  for (const IndexedTensor& tensor : index.tensors) listed.emplace(tensor.name, tensor.file);
  // Those of the files are noted when they come, and follow what the index says.
  std::vector<Mismatch> of_files;
  for (std::size_t f = 0; f < files.size(); ++f) {
    for (const std::string_view name : files[f].tensors) {
      const auto [place, is_new] = held.emplace(name, f);
      const auto in_index = listed.find(name);
      if (!is_new) {
        of_files.push_back({MismatchKind::repeated, std::string(name), f, place->second});
      } else if (in_index == listed.end()) {
        of_files.push_back({MismatchKind::unlisted, std::string(name), f});
      } else if (in_index->second != f && !files[in_index->second].is_known) {
        of_files.push_back({MismatchKind::elsewhere, std::string(name), in_index->second, f});
      }
    }
  }
  for (const IndexedTensor& tensor : index.tensors) {
    if (!files[tensor.file].is_known) continue;
    const auto place = held.find(tensor.name);
    if (place == held.end()) {
      found.push_back({MismatchKind::missing, tensor.name, tensor.file});
    } else if (place->second != tensor.file) {
      found.push_back({MismatchKind::elsewhere, tensor.name, tensor.file, place->second});
    }
  }
  found.insert(found.end(), std::make_move_iterator(of_files.begin()),
               std::make_move_iterator(of_files.end()));
  return found;
}

std::string describe(const Mismatch& mismatch, const ModelIndex& index) {
  const auto name = [&](std::size_t i) { return printable(index.files[i]); };
  switch (mismatch.kind) {
    case MismatchKind::missing:
      return fmt::format("{} has no such tensor, which the index places there",
                         name(mismatch.file));
    case MismatchKind::elsewhere:
      return fmt::format("the tensor is in {}, and the index places it in {}", name(mismatch.other),
                         name(mismatch.file));
    case MismatchKind::unlisted:
      return fmt::format("{} has a tensor that the index lacks", name(mismatch.file));
    case MismatchKind::repeated:
      break;
  }
  return fmt::format("the tensor is in {} and in {}", name(mismatch.other), name(mismatch.file));
}

void refuse_mismatch(const std::vector<Mismatch>& found, const ModelIndex& index,
                     const std::string& path) {
  if (found.empty()) return;
  std::vector<std::string> alike;
  for (const Mismatch& mismatch : found)
    if (mismatch.kind == found.front().kind) alike.push_back(mismatch.tensor);
  throw FormatError(ErrorCode::inconsistent, describe(found.front(), index),
                    {.path = path,
                     .section = "index",
                     .tensor = printable(found.front().tensor),
                     .value = list_names(alike)});
}

}  // namespace thalia::formats::safetensors
