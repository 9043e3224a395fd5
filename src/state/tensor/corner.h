// A smaller tensor as the corner of a larger one: the elements whose indices lie below its extents.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "thalia/state/tensor_value.h"

namespace thalia::state {

/// Gives the numbers of elements [first, first + values.size()) of a tensor, counted in row-major
/// order. A number depends on the element's own place alone: pieces of any size are asked for.
using ElementFill = std::function<void(std::uint64_t first, std::span<double> values)>;

/// The tensor in a shape that is nowhere smaller, in its element type and encoding. Old elements
/// keep their indices and their bits; new ones get what `fill` says, or zero bits without one. A
/// sparse tensor does not store new elements of zero bits. @throws UsageError (size_mismatch) for
/// another rank, a smaller extent, or more elements than 2^64 - 1; (dtype_mismatch) if there is
/// a fill and the type holds no numbers; FormatError on a bad index.
Tensor grown(const Tensor& old, const Shape& shape, const ElementFill& fill = {});

/// `whole` with the elements of `corner` in its corner, in the encoding of `whole`. @throws
/// UsageError (size_mismatch) unless the corner fits; (dtype_mismatch) for another element type;
/// FormatError on a bad index.
Tensor with_corner(const Tensor& whole, const Tensor& corner);

/// True if ranks agree and no extent of `inner` is larger.
bool fits_into(const Shape& inner, const Shape& outer) noexcept;

}  // namespace thalia::state
