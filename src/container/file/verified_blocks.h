// Remembers which parts of a file have been checked against its checksum, and checks the
// rest when asked. docs/format/format.md, "Block tree".
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "format/header.h"
#include "io/file/file_bytes.h"
#include "io/system/process.h"
#include "thalia/types.h"

namespace thalia::container {

/// Bytes that anybody who walks a cold file asks the kernel for before it needs them: page faults
/// alone read a disk at a fraction of its speed.
inline constexpr std::uint64_t kReadAheadBytes = 16 << 20;

/// @throws IntegrityError for a block whose bytes do not have its leaf.
[[noreturn]] void fail_block(const format::Header& header, std::uint64_t block);

/// For files with a block tree. Internally synchronised: two threads may check one block twice,
/// never skip it.
class VerifiedBlocks {
 public:
  /// Checks the mapping up to header.file_length; both are borrowed.
  VerifiedBlocks(const io::FileBytes& mapping, const format::Header& header, unsigned threads);

  /// Checks the blocks of [offset, offset + length) that were not checked before, and once the
  /// leaves themselves against the closing checksum. The extent lies before integrity_offset.
  /// @throws IntegrityError naming the first bad block.
  void ensure(std::uint64_t offset, std::uint64_t length);
  /// Checks the leaves alone. @throws IntegrityError.
  void ensure_leaves();

  /// Reads an extent of a copied file: whole blocks into `out`, where they are checked and nowhere
  /// remembered, and the ends of others by way of the file's own memory.
  /// @throws as ensure(); IoError, FormatError.
  void read(std::uint64_t offset, MutableByteSpan out);
  /// The leaves of `count` blocks, checked against the closing checksum. @throws IntegrityError.
  ByteSpan leaves(std::uint64_t first, std::uint64_t count);
  /// Notes that the bytes of a block, read another way, had its leaf.
  void note(std::uint64_t block) noexcept;

 private:
  std::uint64_t end_of(std::uint64_t block) const noexcept;
  bool is_done(std::uint64_t block) const noexcept;
  void check(std::uint64_t block);

  const io::FileBytes& mapping_;
  ByteSpan file_;
  const format::Header& header_;
  unsigned threads_;
  ByteSpan leaves_;
  std::uint64_t blocks_;
  io::Once leaves_once_;
  struct Free {
    void operator()(void* memory) const noexcept;
  };
  // One bit a block, from calloc: zero pages cost nothing until a block is checked.
  std::unique_ptr<std::atomic<std::uint64_t>[], Free> bits_;
};

}  // namespace thalia::container
