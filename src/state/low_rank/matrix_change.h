// The change of a matrix as numbers, and products of vectors that make it again.
#pragma once

#include <optional>
#include <vector>

#include "codec/lossy/low_rank.h"
#include "thalia/types.h"

namespace thalia::state {

/// Elements of f32, f16, f64 or bf16.
struct Elements {
  DType dtype = DType::f32;
  ByteSpan bytes{};
};

/// now - base in f32, as the decomposition takes it; nullopt if a number is not finite there. Both
/// have as many elements.
std::optional<std::vector<float>> matrix_change(const Elements& base, const Elements& now);

/// codec::add_low_rank() for the whole matrix.
void add_products(DType dtype, const codec::LowRankFactors& factors, MutableByteSpan elements,
                  unsigned threads);

}  // namespace thalia::state
