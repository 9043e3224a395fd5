// mincore() on a mapping that is never read from: it tells which pages the page cache holds, and
// brings none in. The answer is a guess by the time it is used, as pages come and go. So callers
// only choose between two right ways by it.
#include "io/file/page_cache.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>

namespace thalia::io {

PageCacheView::PageCacheView(int fd, std::uint64_t size) noexcept {
  if (size == 0) return;
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  // Else the mapping stays empty, and nothing counts as cached.
  if (address != MAP_FAILED)
    mapping_ = {static_cast<const std::byte*>(address), static_cast<std::size_t>(size)};
}

PageCacheView::~PageCacheView() {
  if (!mapping_.empty()) ::munmap(const_cast<std::byte*>(mapping_.data()), mapping_.size());
}

bool PageCacheView::holds(std::uint64_t offset, std::uint64_t length) const noexcept {
  if (offset >= mapping_.size() || length == 0) return false;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t last = std::min<std::uint64_t>(length, mapping_.size() - offset) - 1;
  for (const std::uint64_t at : {offset, offset + last / 2, offset + last}) {
    unsigned char resident = 0;
    std::byte* const start = const_cast<std::byte*>(mapping_.data() + at / page * page);
    if (::mincore(start, 1, &resident) != 0 || (resident & 1) == 0) return false;
  }
  return true;
}

}  // namespace thalia::io
