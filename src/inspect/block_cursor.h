// Going through a part of a tensor in pieces of bounded size, in row-major order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia::inspect {

/// Cuts ranges into blocks that follow each other in row-major order: each is at most `limit` bytes
/// or one element, and its elements are consecutive in the order of the whole.
class BlockCursor {
 public:
  BlockCursor(std::vector<SliceRange> ranges, DType dtype, std::uint64_t limit);
  /// nullopt after the last one. There is none if the ranges are empty.
  std::optional<std::vector<SliceRange>> next();

 private:
  std::vector<SliceRange> whole_;
  std::vector<std::uint64_t> position_;  ///< where the next block begins, one a dimension
  std::size_t split_ = 0;                ///< the dimension that is cut; those after it stay whole
  std::uint64_t step_ = 1;               ///< indices of that dimension in one block
  bool done_ = false;
};

}  // namespace thalia::inspect
