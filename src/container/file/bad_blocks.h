// Blocks whose leaves differ, and the extents of a file that reach into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "format/extent.h"
#include "format/header.h"

namespace thalia::container {

/// Immutable. A question costs its answer and a binary search, never a walk over all blocks: a file
/// may have millions of blocks and tensors, and all of them may be bad.
class BadBlocks {
 public:
  /// @param numbers of the bad blocks, ascending; empty for a file without a block tree. @param
  /// header one that was validated.
  BadBlocks(std::vector<std::uint64_t> numbers, const format::Header& header);

  std::size_t size() const noexcept { return numbers_.size(); }
  std::uint64_t number(std::size_t i) const noexcept { return numbers_[i]; }
  format::Extent extent(std::size_t i) const noexcept;

  /// The part of an extent that lies in the first bad block that it reaches; the whole extent if
  /// it reaches none.
  format::Extent first_part(const format::Extent& extent) const;
  /// For each bad block, whether any of the extents reaches into it. Extents may overlap.
  std::vector<bool> touched_by(const std::vector<format::Extent>& extents) const;

 private:
  // The bad blocks that an extent reaches into, as a range [first, end) of numbers_.
  std::pair<std::size_t, std::size_t> range_of(const format::Extent& extent) const;

  std::vector<std::uint64_t> numbers_;
  unsigned log2_;
  std::uint64_t end_;  ///< of the last block
};

}  // namespace thalia::container
