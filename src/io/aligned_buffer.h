// Memory that direct I/O accepts.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "thalia/bytes.h"

namespace thalia::io {

/// What offset and length of a direct transfer are a multiple of, and memory where the kernel does
/// not say that less will do: enough for every device in use.
inline constexpr std::size_t kDirectAlignment = 4096;

/// Uninitialised bytes, aligned to kDirectAlignment; 2 MiB and more in huge pages where the system
/// has them: they are there after fewer faults, and a device takes them in fewer segments.
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
