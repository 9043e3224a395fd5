// The argument of --slice: which part of a tensor.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia::cli {

struct Slice {
  std::vector<SliceRange> ranges;  ///< one a dimension of the tensor
  std::vector<unsigned> kept;      ///< dimensions of the result, as dimensions of the tensor
  Shape shape;                     ///< of the result: dimensions given as one index are gone
};

/// All of a tensor.
Slice whole(const Shape& shape);

/// Parts separated by commas, outermost dimension first: "2:5" (up to and without 5), "2:", ":5",
/// ":", "7" (one index, which drops the dimension), negative numbers from the end, "..." for all
/// dimensions in between. Dimensions without a part are taken whole. Unlike in Python a bound
/// outside the tensor is an error, and there are no steps.
/// @throws UsageError (bad_argument) naming the dimension, the value and the bound.
Slice parse_slice(std::string_view text, const Shape& shape);

}  // namespace thalia::cli
