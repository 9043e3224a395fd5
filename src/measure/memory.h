// Memory, and how fast the machine copies it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>

#include "thalia/types.h"

namespace thalia::measure {

inline constexpr std::size_t kPageBytes = 4096;

/// Bytes at a page's start, as O_DIRECT wants them, in huge pages where the system gives any. Every
/// page was written to.
class PageMemory {
 public:
  explicit PageMemory(std::uint64_t size);
  explicit PageMemory(ByteSpan contents);
  MutableByteSpan bytes() const noexcept { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_;
};

/// Calls job(begin, length) for each run of `step` bytes of `size`, on up to `threads` threads (0:
/// one a core).
void for_each_run(std::size_t size, std::size_t step, unsigned threads,
                  const std::function<void(std::size_t begin, std::size_t length)>& job);

/// Copies with a memcpy of 4 MiB at a time, on up to `threads` threads (0: one a core). The sizes
/// are equal.
void copy_all(ByteSpan from, MutableByteSpan to, unsigned threads);

}  // namespace thalia::measure
