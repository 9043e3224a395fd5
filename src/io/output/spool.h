// Bytes that are written once and read back once soon after: in memory while they are few, and in a
// temporary file beyond.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/memory/anonymous_memory.h"
#include "io/system/unique_fd.h"
#include "thalia/storage.h"
#include "thalia/types.h"

namespace thalia::io {

/// Externally synchronised. Leaves nothing behind.
class Spool {
 public:
  /// @param memory_bytes kept in memory at most; what goes beyond is in a file.
  /// @param folder where that file is made, when it is; empty: temporary_folder().
  Spool(std::uint64_t memory_bytes, std::filesystem::path folder);

  std::uint64_t size() const noexcept { return size_; }
  /// Not after take(). @throws IoError.
  void append(ByteSpan bytes);
  /// Forgets what is after byte `size`; there are at least that many bytes. Not after take().
  void truncate(std::uint64_t size);
  /// Hands on the next `length` bytes in pieces, beginning with the first, and frees them. At least
  /// that many are left. @throws IoError; what the sink throws.
  void take(std::uint64_t length, const ByteSink& sink);

 private:
  std::uint64_t memory_bytes_;
  std::filesystem::path folder_;
  std::uint64_t size_ = 0;
  std::uint64_t taken_ = 0;
  /// All of one length, so that nothing moves when one is added.
  std::vector<AnonymousMemory> chunks_;
  std::uint64_t file_begin_ = 0;  ///< bytes in memory, if there is a file
  UniqueFd file_;                 ///< without a name
  std::vector<std::byte> piece_;  ///< of the file, while it is read
};

}  // namespace thalia::io
