#include "container/file/bad_blocks.h"

#include <algorithm>

namespace thalia::container {

BadBlocks::BadBlocks(std::vector<std::uint64_t> numbers, const format::Header& header)
    : numbers_(std::move(numbers)),
      log2_(header.integrity_block_log2),
      end_(header.integrity_offset) {}

format::Extent BadBlocks::extent(std::size_t i) const noexcept {
  const std::uint64_t begin = numbers_[i] << log2_;
  return {begin, std::min((numbers_[i] + 1) << log2_, end_) - begin};
}

std::pair<std::size_t, std::size_t> BadBlocks::range_of(const format::Extent& extent) const {
  if (extent.length == 0) return {0, 0};
  const auto first = std::lower_bound(numbers_.begin(), numbers_.end(), extent.offset >> log2_);
  const auto end =
      std::upper_bound(first, numbers_.end(), (extent.offset + extent.length - 1) >> log2_);
  return {first - numbers_.begin(), end - numbers_.begin()};
}

format::Extent BadBlocks::first_part(const format::Extent& extent) const {
  const auto [first, end] = range_of(extent);
  if (first == end) return extent;
  const format::Extent block = this->extent(first);
  const std::uint64_t from = std::max(extent.offset, block.offset);
  const std::uint64_t to = std::min(extent.offset + extent.length, block.offset + block.length);
  return {from, to - from};
}

std::vector<bool> BadBlocks::touched_by(const std::vector<format::Extent>& extents) const {
  // A difference array: one more at the first bad block that an extent reaches, one less after the
  // last. Its running sum counts the extents that reach into each block, in one pass however much
  // they overlap.
  std::vector<std::int64_t> changes(size() + 1);
  for (const format::Extent& extent : extents) {
    const auto [first, end] = range_of(extent);
    ++changes[first];
    --changes[end];
  }
  std::vector<bool> out(size());
  std::int64_t inside = 0;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = (inside += changes[i]) > 0;
  return out;
}

}  // namespace thalia::container
