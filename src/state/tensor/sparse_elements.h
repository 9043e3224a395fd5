// The stored elements of a csr or coo tensor as one list, whichever of the two it is.
#pragma once

#include <cstdint>
#include <vector>

#include "thalia/state/tensor_value.h"

namespace thalia::state {

struct SparseElements {
  std::vector<std::uint64_t> positions;  ///< numbers of elements in row-major order, ascending
  std::vector<std::byte> values;         ///< as many elements
};

/// The stored elements; of a dense tensor those whose bits are not all zero. @throws FormatError on
/// a bad index; UsageError (size_mismatch) if the tensor has more elements than 2^64 - 1.
SparseElements sparse_elements(const Tensor& tensor);

/// A tensor of these elements and this shape, in the element type and encoding of `like`. Indices
/// are wide if those of `like` are, or if they have to be.
Tensor sparse_tensor(const Tensor& like, const Shape& shape, const SparseElements& elements);

/// @throws UsageError (size_mismatch) if the shape has more elements than 2^64 - 1.
std::uint64_t require_countable(const Shape& shape);

}  // namespace thalia::state
