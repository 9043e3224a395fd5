// Memory for one chunk that a thread keeps for the next one.
#pragma once

#include <cstddef>
#include <memory>

#include "thalia/bytes.h"

namespace thalia::codec {

/// Make it thread_local. Bytes have no initial value: a chunk's worth of zeros would cost as much
/// as the fastest codecs.
class Scratch {
 public:
  /// A chunk of the largest size would stay with each thread for good: those are given back.
  static constexpr std::size_t kKept = 16 << 20;

  /// Of one use at a time.
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

  /// Valid until it goes. @throws std::bad_alloc.
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
