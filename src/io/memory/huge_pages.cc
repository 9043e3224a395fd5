#include "io/memory/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace thalia::io {

void prefer_huge_pages(MutableByteSpan memory) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t before = (kHugePage - address % kHugePage) % kHugePage;
  // Only whole huge pages: advice for the edges would reach neighbours that share them.
  if (memory.size() < before + kHugePage) return;
  const std::size_t whole = (memory.size() - before) / kHugePage * kHugePage;
  static_cast<void>(::madvise(memory.data() + before, whole, MADV_HUGEPAGE));
}

}  // namespace thalia::io
