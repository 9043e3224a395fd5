// Memory of states that nobody holds any more, for the tensors of the next: memory that is new is
// cleared by the system page by page, which takes longer than to fill it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "io/memory/aligned_buffer.h"
#include "io/system/process.h"
#include "thalia/types.h"

namespace thalia::store {

/// Any number of threads.
class SpareMemory : public std::enable_shared_from_this<SpareMemory> {
 public:
  /// What is kept from now on, at most: about one state.
  void keep(std::uint64_t bytes);
  /// Bytes of that size, 64-byte aligned, which hold anything. When the last copy of the pointer
  /// goes, from any thread, they are kept for the next. @throws std::bad_alloc.
  std::shared_ptr<const MutableByteSpan> take(std::uint64_t size);

 private:
  using Block = std::unique_ptr<io::AlignedBuffer>;
  void put_back(Block block) noexcept;

  io::ThreadLock lock_;
  std::uint64_t most_ = 0;
  std::uint64_t kept_ = 0;
  std::multimap<std::uint64_t, Block> blocks_;  ///< by their sizes
};

}  // namespace thalia::store
