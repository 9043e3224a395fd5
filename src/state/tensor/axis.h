// Some indices of one axis of a tensor, taken out and put back.
#pragma once

#include <cstdint>
#include <span>

#include "thalia/state/tensor_value.h"

namespace thalia::state {

// Indices ascend strictly. Element type and encoding are the tensor's, packed types included.

/// The tensor without these indices of the axis.
Tensor without_indices(const Tensor& tensor, unsigned axis, std::span<const std::uint64_t> indices);
/// The tensor with these indices of the axis alone.
Tensor only_indices(const Tensor& tensor, unsigned axis, std::span<const std::uint64_t> indices);
/// Puts together what without_indices() left and what only_indices() took: bit for bit the tensor
/// as it was. @throws UsageError (size_mismatch) if the shapes do not fit.
Tensor with_indices(const Tensor& rest, unsigned axis, std::span<const std::uint64_t> indices,
                    const Tensor& taken);

}  // namespace thalia::state
