// A file that exists in memory alone: for bytes that are made piece by piece and then read as those
// of a file are, at addresses and through a descriptor.
#pragma once

#include <cstdint>

#include "io/system/unique_fd.h"
#include "thalia/types.h"

namespace thalia::io {

/// Empty, and gone with its last descriptor and mapping. @throws IoError.
UniqueFd create_memory_file();

/// The first `size` bytes of a memory file, which it makes that long, mapped: zeros that cost
/// nothing until they are touched. Move-only.
class MemoryMapping {
 public:
  /// @throws IoError, with ENOMEM or EFBIG above all.
  MemoryMapping(int fd, std::uint64_t size);
  ~MemoryMapping();
  MemoryMapping(const MemoryMapping&) = delete;
  MemoryMapping& operator=(const MemoryMapping&) = delete;

  MutableByteSpan bytes() const noexcept { return bytes_; }

 private:
  MutableByteSpan bytes_;
};

}  // namespace thalia::io
