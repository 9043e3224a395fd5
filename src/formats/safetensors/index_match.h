// Whether files are those that an index names.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/safetensors.h"

namespace thalia::formats::safetensors {

/// What one file of the index has; its tensors may be unknown: it cannot be read, or was not yet.
struct ShardContent {
  bool is_known = false;
  std::vector<std::string_view> tensors{};
};

enum class MismatchKind { missing, elsewhere, unlisted, repeated };
struct Mismatch {
  MismatchKind kind;
  std::string tensor;
  std::size_t file;       ///< the one that the index names, or that holds what is unlisted
  std::size_t other = 0;  ///< where the tensor is as well, or instead
};
/// In the order of the index, then of the files. @param files as in the index. Those that are not
/// known count as having what the index says, unless another file has that.
std::vector<Mismatch> compare_with_index(const ModelIndex& index,
                                         std::span<const ShardContent> files);
/// One line about one of these.
std::string describe(const Mismatch& mismatch, const ModelIndex& index);
/// Throws if there is one: the first, with the names of all of its kind. @param path of the index.
void refuse_mismatch(const std::vector<Mismatch>& found, const ModelIndex& index,
                     const std::string& path);

}  // namespace thalia::formats::safetensors
