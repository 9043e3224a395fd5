// Memory that direct I/O accepts.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "thalia/bytes.h"

namespace thalia::io {

/// What offset, length and memory of a direct transfer are a multiple of: enough for every device
/// in use.
inline constexpr std::size_t kDirectAlignment = 4096;

/// Uninitialised bytes, aligned to kDirectAlignment.
class AlignedBuffer {
 public:
  /// @param size a multiple of kDirectAlignment.
  explicit AlignedBuffer(std::size_t size)
      : bytes_(static_cast<std::byte*>(std::aligned_alloc(kDirectAlignment, size))), size_(size) {
    if (!bytes_) throw std::bad_alloc();
  }
  MutableByteSpan bytes() const noexcept { return {bytes_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t size_;
};

}  // namespace thalia::io
