// Part of a dense tensor in memory, for formats whose library interface hands out whole tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "thalia/bytes.h"
#include "thalia/dtype.h"
#include "thalia/shape.h"
#include "thalia/tensor.h"

namespace thalia::inspect {

/// Bytes of `elements` of the dtype, rounded up to a whole byte.
std::uint64_t packed_bytes(DType dtype, std::uint64_t elements);

/// The bytes with the elements inside the ranges, which copy_slice() copies; nullopt where other
/// elements lie among them.
std::optional<ByteSpan> consecutive(DType dtype, const Shape& shape, ByteSpan bytes,
                                    std::span<const SliceRange> ranges);

/// Copies the elements inside the ranges, one a dimension, out of row-major `bytes`. Packed dtypes
/// are one bit stream on both sides. out.size() is packed_bytes() of the ranges' elements.
void copy_slice(DType dtype, const Shape& shape, ByteSpan bytes, std::span<const SliceRange> ranges,
                MutableByteSpan out);

}  // namespace thalia::inspect
