// How far the floating point types reach.
#pragma once

#include <cfloat>

#include "thalia/types.h"

namespace thalia::codec {

/// The largest finite number of f16, bf16, f32 or f64.
constexpr double largest_finite(DType dtype) noexcept {
  return dtype == DType::f16    ? 65504
         : dtype == DType::bf16 ? 0x1.FEp127
         : dtype == DType::f32  ? FLT_MAX
                                : DBL_MAX;
}

}  // namespace thalia::codec
