// Blocks whose leaves differ, and the extents of a file that reach into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "format/extent.h"
#include "format/header.h"

namespace thalia::container {

/// Immutable. Every question costs what its answer and a binary search cost, as a file may have
/// millions of blocks and of tensors, and all of them be bad.
class BadBlocks {
 public:
  /// @param numbers ascending; empty of a file without block tree. @param header valid.
  BadBlocks(std::vector<std::uint64_t> numbers, const format::Header& header);

  std::size_t size() const noexcept { return numbers_.size(); }
  std::uint64_t number(std::size_t i) const noexcept { return numbers_[i]; }
  format::Extent extent(std::size_t i) const noexcept;

  /// The part of an extent that lies in the first of them; all of it where none is in it.
  format::Extent first_part(const format::Extent& extent) const;
  /// Of each, whether any of the extents reaches into it. Extents may overlap.
  std::vector<bool> touched_by(const std::vector<format::Extent>& extents) const;

 private:
  // [first, end) of those that an extent reaches into.
  std::pair<std::size_t, std::size_t> range_of(const format::Extent& extent) const;

  std::vector<std::uint64_t> numbers_;
  unsigned log2_;
  std::uint64_t end_;  ///< of the last block
};

}  // namespace thalia::container
