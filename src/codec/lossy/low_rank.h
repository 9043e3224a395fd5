// A matrix of low rank added to floating point elements. docs/format/deltas.md, "low_rank_delta".
#pragma once

#include <cstdint>
#include <vector>

#include "thalia/types.h"

namespace thalia::codec {

/// The sum of `rank` products of a column and a row.
struct LowRankFactors {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t rank = 0;
  std::vector<double> left;   ///< rank × rows: one column after the other
  std::vector<double> right;  ///< rank × columns: one row after the other
};

/// Adds the sum to elements of f32, f16, f64 or bf16, which are those from number `first` on of a
/// row-major matrix of that size: in f64, the products in the order of the factors, each product
/// and each sum rounded, the element added last; what passes the type's finite numbers becomes the
/// nearest of them, and is rounded once to the type. Every machine gives the same bytes. Any thread
/// may call it. @throws UsageError (dtype_mismatch, size_mismatch).
void add_low_rank(DType dtype, const LowRankFactors& factors, std::uint64_t first,
                  MutableByteSpan elements);

}  // namespace thalia::codec
