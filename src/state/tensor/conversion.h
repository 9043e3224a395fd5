// A tensor in another element type.
#pragma once

#include "codec/float/loss.h"
#include "thalia/state/tensor_value.h"

namespace thalia::state {

/// The same shape, encoding and indices with each element or value rounded to `dtype`; the tensor
/// itself if it has that type. Adds what that costs to `loss`, if it is given. `threads`
/// share the work; 0: one a core. @throws UsageError (dtype_mismatch) if a type is not one of f32,
/// f64, f16 and bf16.
Tensor convert_tensor(const Tensor& tensor, DType dtype, unsigned threads,
                      codec::ConversionLoss* loss = nullptr);

}  // namespace thalia::state
