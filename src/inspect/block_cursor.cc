// A block's elements must be consecutive in row-major order. So all dimensions inside of the one
// that is cut are whole, and all around it are single indices. Products saturate: the extents of a
// sparse tensor may multiply to more than 64 bits.
#include "inspect/block_cursor.h"

#include <algorithm>
#include <utility>

#include "state/tensor/slice.h"

namespace thalia::inspect {
namespace {

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? ~std::uint64_t{0} : product;
}

}  // namespace

BlockCursor::BlockCursor(std::vector<SliceRange> ranges, DType dtype, std::uint64_t limit)
    : whole_(std::move(ranges)), split_(whole_.size()), done_(state::range_elements(whole_) == 0) {
  if (done_) return;
  for (const SliceRange& range : whole_) position_.push_back(range.begin);
  // Dimensions are taken whole from the innermost outwards as long as they fit; the first that does
  // not fit is cut into steps. A block has at least one element, however large that is.
  const std::uint64_t most = std::max<std::uint64_t>(1, limit * 8 / dtype_bits(dtype));
  std::uint64_t inner = 1;
  while (split_ > 0 && inner <= most) {
    --split_;
    step_ = most / inner;
    inner = saturating_product(inner, whole_[split_].end - whole_[split_].begin);
  }
}

std::optional<std::vector<SliceRange>> BlockCursor::next() {
  if (done_) return std::nullopt;
  std::vector<SliceRange> block = whole_;
  if (whole_.empty()) {
    done_ = true;
    return block;
  }
  for (std::size_t d = 0; d < split_; ++d) block[d] = {position_[d], position_[d] + 1};
  const std::uint64_t begin = position_[split_];
  const std::uint64_t end = begin + std::min(step_, whole_[split_].end - begin);
  block[split_] = {begin, end};

  // Counts up like an odometer: a dimension at its end starts over, and the next outer one moves
  // on.
  position_[split_] = end;
  for (std::size_t d = split_; position_[d] == whole_[d].end; --d) {
    position_[d] = whole_[d].begin;
    if (d == 0) {
      done_ = true;
      break;
    }
    ++position_[d - 1];
  }
  return block;
}

}  // namespace thalia::inspect
