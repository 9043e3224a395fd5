// Remembers which parts of a mapped file have been checked against its checksum, and checks the
// rest when asked. docs/format.md, "Block tree".
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "thalia/bytes.h"
#include "thalia/format/header.h"

namespace thalia::container {

/// For files with a block tree. Internally synchronised: two threads may check one block twice,
/// never skip it.
class VerifiedBlocks {
 public:
  /// `file` is the mapping up to header.file_length; both are borrowed.
  VerifiedBlocks(ByteSpan file, const format::Header& header, unsigned threads);

  /// Checks the blocks of [offset, offset + length) that were not checked before, and once the
  /// leaves themselves against the closing checksum. The extent lies before integrity_offset.
  /// @throws IntegrityError naming the first bad block.
  void ensure(std::uint64_t offset, std::uint64_t length);

 private:
  void ensure_leaves();
  bool is_done(std::uint64_t block) const noexcept;
  void check(std::uint64_t block);

  ByteSpan file_;
  const format::Header& header_;
  unsigned threads_;
  ByteSpan leaves_;
  std::uint64_t blocks_;
  std::once_flag leaves_once_;
  struct Free {
    void operator()(void* memory) const noexcept;
  };
  // One bit a block, from calloc: zero pages cost nothing until a block is checked.
  std::unique_ptr<std::atomic<std::uint64_t>[], Free> bits_;
};

}  // namespace thalia::container
