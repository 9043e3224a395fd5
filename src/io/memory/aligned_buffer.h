// Memory that direct I/O accepts.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "thalia/types.h"

namespace thalia::io {

/// Offsets and lengths of direct transfers are multiples of this. So are addresses, unless the
/// kernel says that less will do. It is enough for every device in use.
inline constexpr std::size_t kDirectAlignment = 4096;

/// Uninitialised bytes, aligned to kDirectAlignment. Buffers of 2 MiB and more are in huge pages
/// if the system has them: they take fewer page faults, and a device takes them in fewer
/// segments.
class AlignedBuffer {
 public:
  /// @param size a multiple of kDirectAlignment. @throws std::bad_alloc.
  explicit AlignedBuffer(std::size_t size);
  MutableByteSpan bytes() const noexcept { return {bytes_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t size_;
};

}  // namespace thalia::io
