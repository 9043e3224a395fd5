// A dense shape cut into pieces of a bounded number of elements, each a slice.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia::state {

class DensePieces {
 public:
  /// `largest` elements a piece, at least 1.
  DensePieces(const Shape& shape, std::uint64_t largest);

  /// Pieces; 0 for an empty shape.
  std::uint64_t count() const noexcept { return outer_ * pieces_per_outer_; }

  struct Piece {
    std::array<SliceRange, Shape::kMaxRank> ranges{};
    std::uint64_t first = 0;     ///< of its elements, in row-major order of the shape
    std::uint64_t elements = 0;  ///< consecutive in that order
  };
  Piece operator[](std::uint64_t i) const;

 private:
  Shape shape_;
  unsigned split_ = 0;       ///< the dimension that is cut; those before it are stepped through
  std::uint64_t inner_ = 1;  ///< elements of one index of it
  std::uint64_t rows_ = 1;   ///< indices of it a piece
  std::uint64_t outer_ = 1;
  std::uint64_t pieces_per_outer_ = 1;
};

}  // namespace thalia::state
