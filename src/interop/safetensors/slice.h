// Part of a dense tensor that lies in a file, without the rest of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "thalia/options.h"
#include "thalia/tensor.h"
#include "thalia/tensor_value.h"

namespace thalia::interop::safetensors {

/// A dense tensor's bytes at addresses that stay, of which extents are made readable on demand.
struct SlicedTensor {
  DType dtype = DType::f32;
  Shape shape{};
  ByteSpan bytes{};
  std::shared_ptr<const void> owner{};
  std::function<void(std::uint64_t begin, std::uint64_t length)> touch{};  ///< in `bytes`
};

/// The elements inside the ranges: in place where they lie together and begin and end at bytes,
/// else a copy. @throws as SafetensorsModel::read_range(); what touch throws.
Tensor slice_of(const SlicedTensor& tensor, std::span<const SliceRange> ranges,
                const ReadLimits& limits);

}  // namespace thalia::interop::safetensors
