// Memory for one chunk, which a thread keeps for its next chunk.
#pragma once

#include <cstddef>
#include <memory>

#include "thalia/types.h"

namespace thalia::codec {

/// Declare it thread_local. The bytes have no initial value: zeroing a chunk would cost as much as
/// the fastest codecs do.
class Scratch {
 public:
  /// Memory above this size is given back after use; each thread would else keep it for good.
  static constexpr std::size_t kKept = 16 << 20;

  /// One use of the memory. Only one lease at a time.
  class Lease {
   public:
    Lease(Scratch& owner, std::size_t size) : owner_(owner), bytes_(owner.reserve(size), size) {}
    ~Lease() {
      if (owner_.capacity_ > kKept) owner_.release();
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    MutableByteSpan bytes() const noexcept { return bytes_; }

   private:
    Scratch& owner_;
    MutableByteSpan bytes_;
  };

  /// The bytes are valid until the lease ends. @throws std::bad_alloc.
  Lease take(std::size_t size) { return Lease(*this, size); }

 private:
  std::byte* reserve(std::size_t size) {
    if (size > capacity_) {
      release();
      memory_ = std::make_unique_for_overwrite<std::byte[]>(size);
      capacity_ = size;
    }
    return memory_.get();
  }
  void release() noexcept {
    memory_.reset();
    capacity_ = 0;
  }

  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace thalia::codec
