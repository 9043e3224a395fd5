// Bytes that are written once and read back before long: in memory as long as they are few, then in
// a temporary file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "io/atomic_file.h"
#include "thalia/bytes.h"
#include "thalia/storage.h"

namespace thalia::io {

/// Externally synchronised. Leaves nothing behind.
class Spool {
 public:
  /// @param memory_bytes kept in memory at most; what goes beyond moves all to a file.
  /// @param folder where that file is made, when it is.
  Spool(std::uint64_t memory_bytes, std::filesystem::path folder);

  std::uint64_t size() const noexcept { return size_; }
  /// @throws IoError.
  void append(ByteSpan bytes);
  /// Forgets what is behind byte `size`, which is not more than there is.
  void truncate(std::uint64_t size);
  /// Hands on an extent, which lies within, in pieces. @throws IoError; what the sink throws.
  void read(std::uint64_t offset, std::uint64_t length, const ByteSink& sink);

 private:
  void spill();

  std::uint64_t memory_bytes_;
  std::filesystem::path folder_;
  std::uint64_t size_ = 0;
  std::vector<std::byte> memory_;  ///< all of it, or a piece for reading back
  std::optional<AtomicFile> file_;
};

}  // namespace thalia::io
