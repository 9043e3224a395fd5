// Blobs as tensors.
#pragma once

#include <optional>
#include <string>

#include "formats/loom/document.h"
#include "thalia/types.h"

namespace thalia::formats::loom {

/// What a blob of so many bytes is: elements where this library has the type, else bytes, and the
/// original's name of the type then.
struct BlobLayout {
  TensorLayout layout;
  std::string type;
};
BlobLayout layout_of(const BlobRecord& blob);

/// Elements of a blob as f32: those that its layer counts, or all `there` that it holds.
/// @param layer nullptr: the blob is of none.
std::uint64_t restored_count(const BlobRecord& blob, const LoomLayer* layer, std::uint64_t there);

/// The loom type of a layout of floats that a blob can be written as instead of its own.
std::optional<LoomDType> float_type(DType dtype) noexcept;

}  // namespace thalia::formats::loom
