// Memory as a training program would hand it over: on whole pages, huge ones if there are any,
// and touched, so that no measurement pays for page faults or for the kernel's zeroing.
#include "measure/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/parallel.h"

namespace thalia::measure {

namespace {

// A transfer to the disk has one segment for a huge page, and 512 for as many ordinary pages.
constexpr std::uint64_t kHugePageBytes = 2 << 20;

std::byte* allocate(std::uint64_t size) {
  const std::uint64_t page = size < kHugePageBytes ? kPageBytes : kHugePageBytes;
  const std::uint64_t whole = (size + page - 1) / page * page;
  void* const memory = std::aligned_alloc(page, whole);
  if (memory == nullptr) throw std::bad_alloc();
  static_cast<void>(::madvise(memory, whole, MADV_HUGEPAGE));  // if there are none: as it was
  return static_cast<std::byte*>(memory);
}

}  // namespace

PageMemory::PageMemory(std::uint64_t size) : memory_(allocate(size)), size_(size) {
  std::memset(memory_.get(), 0, size);
}

PageMemory::PageMemory(ByteSpan contents) : PageMemory(contents.size()) {
  std::memcpy(memory_.get(), contents.data(), contents.size());
}

void for_each_run(std::size_t size, std::size_t step, unsigned threads,
                  const std::function<void(std::size_t begin, std::size_t length)>& job) {
  parallel_for((size + step - 1) / step, threads,
               [&](std::size_t i) { job(i * step, std::min(step, size - i * step)); });
}

void copy_all(ByteSpan from, MutableByteSpan to, unsigned threads) {
  for_each_run(from.size(), 4 << 20, threads, [&](std::size_t begin, std::size_t length) {
    std::memcpy(to.data() + begin, from.data() + begin, length);
    // Without a reader the compiler might leave out the copy, which is what is measured.
    asm volatile("" : : "r"(to.data()) : "memory");
  });
}

}  // namespace thalia::measure
