// A new file that is written from front to back and then put at its path whole.
#pragma once

#include <cstdint>
#include <filesystem>

#include "io/atomic_file.h"
#include "thalia/bytes.h"
#include "thalia/options.h"

namespace thalia::container {

/// Externally synchronised. Destroyed without commit(), it leaves what was at the path.
class SequentialOutput {
 public:
  /// @throws as io::AtomicFile.
  SequentialOutput(const std::filesystem::path& path, Durability durability);

  /// @throws IoError.
  void write(ByteSpan bytes);
  std::uint64_t written() const noexcept { return written_; }
  /// @throws as io::AtomicFile::commit().
  void commit();

 private:
  io::AtomicFile file_;
  Durability durability_;
  std::uint64_t written_ = 0;
  std::uint64_t handed_over_ = 0;  ///< to the kernel, to be written back
};

}  // namespace thalia::container
