// Part of a dense tensor: the runs of elements that lie together in it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia::state {

/// Elements in a product of ranges, at most 2^64 - 1: a sparse tensor may have more.
std::uint64_t range_elements(std::span<const SliceRange> ranges);

/// Bytes of `elements` of the dtype, rounded up to a whole byte.
std::uint64_t packed_bytes(DType dtype, std::uint64_t elements);

/// @throws UsageError (bad_argument) for ranges that are not one a dimension, each within the
/// shape; (size_mismatch) if `bytes` is not packed_bytes() of their elements.
void check_slice(DType dtype, const Shape& shape, std::span<const SliceRange> ranges,
                 std::uint64_t bytes);

/// Calls visit(first element, elements) for each run inside the ranges, one range a dimension, in
/// row-major order. All runs have as many elements: those of the inner dimensions that are taken
/// whole, and of the range around them.
void for_each_run(const Shape& shape, std::span<const SliceRange> ranges,
                  const std::function<void(std::uint64_t first, std::uint64_t count)>& visit);

/// The bytes with the elements inside the ranges, which copy_slice() copies; nullopt if other
/// elements lie among them.
std::optional<ByteSpan> consecutive(DType dtype, const Shape& shape, ByteSpan bytes,
                                    std::span<const SliceRange> ranges);

/// Copies the elements inside the ranges out of row-major `bytes`. Packed dtypes are one bit stream
/// on both sides. out.size() is packed_bytes() of the ranges' elements.
void copy_slice(DType dtype, const Shape& shape, ByteSpan bytes, std::span<const SliceRange> ranges,
                MutableByteSpan out);

}  // namespace thalia::state
