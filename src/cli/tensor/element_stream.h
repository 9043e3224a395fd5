// The elements of a part of a tensor one after the other, read in blocks of bounded size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cli/tensor/element.h"
#include "cli/tensor/slice.h"
#include "inspect/opened_tensor.h"

namespace thalia::cli {

/// Bytes that are read at a time.
inline constexpr std::uint64_t kBlockBytes = 4 << 20;

class ElementStream {
 public:
  /// The next part to read, nullopt at the end.
  using NextBlock = std::function<std::optional<std::vector<SliceRange>>()>;

  ElementStream(const inspect::OpenedTensor& source, NextBlock next_block);
  /// All elements of the ranges in row-major order.
  ElementStream(const inspect::OpenedTensor& source, std::vector<SliceRange> ranges);

  /// nullopt after the last one.
  std::optional<Element> next();

 private:
  const inspect::OpenedTensor& source_;
  NextBlock next_block_;
  std::vector<std::byte> block_;
  std::uint64_t count_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace thalia::cli
