// Memory mapped for one owner, from the address space to munmap. The mapping is one huge page
// longer than the bytes, so that they can begin on a huge page wherever the kernel puts the
// mapping; bytes_ is what may be used, mapping_ is what has to be unmapped.
#include "io/memory/anonymous_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <limits>
#include <string>

#include "format/extent.h"
#include "io/memory/huge_pages.h"
#include "thalia/error.h"

namespace thalia::io {
namespace {

std::uint64_t page_size() noexcept {
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

[[noreturn]] void fail_mmap(std::uint64_t size, int errno_value) {
  throw IoError("mmap", errno_value, {.field = "memory", .value = std::to_string(size) + " bytes"});
}

}  // namespace

AnonymousMemory::AnonymousMemory(std::uint64_t size) {
  if (size == 0) return;
  if (size > std::numeric_limits<std::size_t>::max() - 2 * kHugePage) fail_mmap(size, ENOMEM);
  size = format::align_up(size, page_size());
  // The huge page more is address space for the alignment. Pages outside bytes_ are never touched
  // and cost no memory.
  mapping_ =
      ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) fail_mmap(size, errno);
  const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  bytes_ = {static_cast<std::byte*>(mapping_) + (format::align_up(address, kHugePage) - address),
            size};
  prefer_huge_pages(bytes_);
  // An error is ignored: with a kernel that copies on fork everything is slower, and still right.
  ::madvise(bytes_.data(), size, MADV_DONTFORK);
}

AnonymousMemory::~AnonymousMemory() {
  if (!bytes_.empty()) ::munmap(mapping_, bytes_.size() + kHugePage);
}

void AnonymousMemory::populate(std::uint64_t offset, std::uint64_t length) const noexcept {
  const std::uint64_t page = page_size();
  const std::uint64_t begin = offset / page * page;
  const std::uint64_t end = format::align_up(offset + length, page);
#ifdef MADV_POPULATE_WRITE
  if (::madvise(bytes_.data() + begin, end - begin, MADV_POPULATE_WRITE) == 0) return;
#endif
  // Kernels before 5.14: write to each page ourselves. An atomic OR with 0 changes nothing, even
  // where another thread writes to the same byte at that moment.
  for (std::uint64_t at = begin; at < end; at += page) {
    std::atomic_ref(reinterpret_cast<unsigned char&>(bytes_[at])).fetch_or(0);
  }
}

std::uint64_t machine_memory() noexcept {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? static_cast<std::uint64_t>(pages) * page_size() : 0;
}

}  // namespace thalia::io
