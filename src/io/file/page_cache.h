// Tells whether parts of a file are in the page cache, without reading them.
#pragma once

#include <cstdint>

#include "thalia/types.h"

namespace thalia::io {

/// Immutable; any number of threads. Touches no page.
class PageCacheView {
 public:
  /// `fd` is open for reading and may be closed afterwards. A file that cannot be mapped counts as
  /// absent from the cache.
  PageCacheView(int fd, std::uint64_t size) noexcept;
  ~PageCacheView();
  PageCacheView(const PageCacheView&) = delete;
  PageCacheView& operator=(const PageCacheView&) = delete;

  /// True if the first, the middle and the last page of an extent that is not empty are there: a
  /// look at each page would cost more than it saves.
  bool holds(std::uint64_t offset, std::uint64_t length) const noexcept;

 private:
  ByteSpan mapping_;
};

}  // namespace thalia::io
