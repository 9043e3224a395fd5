#include "cli/tensor/element_stream.h"

#include <memory>
#include <utility>

#include "inspect/block_cursor.h"
#include "state/tensor/slice.h"

namespace thalia::cli {

ElementStream::ElementStream(const inspect::OpenedTensor& source, NextBlock next_block)
    : source_(source), next_block_(std::move(next_block)) {}

ElementStream::ElementStream(const inspect::OpenedTensor& source, std::vector<SliceRange> ranges)
    : source_(source),
      next_block_(
          [cursor = std::make_shared<inspect::BlockCursor>(
               std::move(ranges), source.layout.dtype, kBlockBytes)] { return cursor->next(); }) {}

std::optional<Element> ElementStream::next() {
  // A loop, as a block may be empty.
  while (position_ == count_) {
    const auto ranges = next_block_();
    if (!ranges) return std::nullopt;
    count_ = state::range_elements(*ranges);
    position_ = 0;
    block_.resize(state::packed_bytes(source_.layout.dtype, count_));
    source_.read(*ranges, block_);
  }
  return decode_element(source_.layout.dtype, block_, position_++);
}

}  // namespace thalia::cli
