#include "measure/memory.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/parallel.h"

namespace thalia::measure {

PageMemory::PageMemory(std::uint64_t size)
    : memory_(static_cast<std::byte*>(
          std::aligned_alloc(kPageBytes, (size + kPageBytes - 1) / kPageBytes * kPageBytes))),
      size_(size) {
  if (!memory_) throw std::bad_alloc();
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
    // The compiler must believe that somebody looks.
    asm volatile("" : : "r"(to.data()) : "memory");
  });
}

}  // namespace thalia::measure
