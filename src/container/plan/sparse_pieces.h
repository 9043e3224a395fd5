// Sparse tensors as callers have them, three or two arrays, as one payload. docs/format/format.md,
// "Encodings".
#pragma once

#include <vector>

#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia::container {

/// Sets encoding, nnz and wide_indices of `spec`, which has its dtype and shape.
/// @return the arrays, borrowed, with the padding between them; nothing if dtype and
/// shape cannot be sparse. @throws UsageError (size_mismatch, bad_argument).
template <typename Index>
std::vector<ByteSpan> sparse_pieces(TensorSpec& spec, const CsrArrays<Index>& arrays);
template <typename Index>
std::vector<ByteSpan> sparse_pieces(TensorSpec& spec, const CooArrays<Index>& arrays);

}  // namespace thalia::container
