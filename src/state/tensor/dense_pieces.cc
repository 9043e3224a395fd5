// Cuts a dense shape along one dimension, the split: dimensions after it are whole in every piece,
// those before it are stepped through one index at a time. Pieces are therefore consecutive
// elements, cover the shape once and in order, and each is a slice that a reader can ask for. A
// piece is smaller than `largest` where the split's rows do not divide evenly.

#include "state/tensor/dense_pieces.h"

#include <algorithm>

namespace thalia::state {

DensePieces::DensePieces(const Shape& shape, std::uint64_t largest) : shape_(shape) {
  if (shape.element_count() == 0) {
    outer_ = 0;
    return;
  }
  if (shape.rank() == 0) return;
  split_ = shape.rank() - 1;
  // The split is the last dimension whose inner elements do not all fit into a piece. Dividing
  // `largest` instead of multiplying extents cannot overflow.
  while (split_ > 0 && shape[split_] <= largest / inner_) inner_ *= shape[split_--];
  rows_ = std::min(std::max<std::uint64_t>(largest / inner_, 1), shape[split_]);
  pieces_per_outer_ = (shape[split_] - 1) / rows_ + 1;
  for (unsigned d = 0; d < split_; ++d) outer_ *= shape[d];
}

DensePieces::Piece DensePieces::operator[](std::uint64_t i) const {
  Piece piece;
  piece.elements = 1;
  if (shape_.rank() == 0) return piece;
  std::uint64_t outer = i / pieces_per_outer_;
  const std::uint64_t begin = i % pieces_per_outer_ * rows_;
  const std::uint64_t rows = std::min(rows_, shape_[split_] - begin);
  piece.first = (outer * shape_[split_] + begin) * inner_;
  piece.elements = rows * inner_;
  for (unsigned d = split_; d-- > 0; outer /= shape_[d])
    piece.ranges[d] = {outer % shape_[d], outer % shape_[d] + 1};
  piece.ranges[split_] = {begin, begin + rows};
  for (unsigned d = split_ + 1; d < shape_.rank(); ++d) piece.ranges[d] = {0, shape_[d]};
  return piece;
}

}  // namespace thalia::state
