// Where the bytes of a 0.1 file go while it is written, one behind the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/atomic_file.h"
#include "thalia/bytes.h"

namespace thalia::interop {

/// A file that appears at its path with commit(), whole or not at all. Small pieces are gathered.
/// Externally synchronised.
class V01FileSink {
 public:
  V01FileSink(const std::filesystem::path& path, Durability durability);

  void write(ByteSpan bytes);
  /// Replaces what was written, or zeros, at the front.
  void overwrite(std::uint64_t offset, ByteSpan bytes);
  std::uint64_t size() const noexcept { return offset_ + gathered_.size(); }
  /// SHA-256 of all that was written, read again from the file.
  Digest256 checksum();
  void commit();

 private:
  void flush();

  io::AtomicFile file_;
  std::uint64_t offset_ = 0;  ///< where the gathered bytes go
  std::vector<std::byte> gathered_;
};

}  // namespace thalia::interop
