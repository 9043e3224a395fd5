// The chunks of one tensor, checked and decoded. docs/format/format.md, "Chunks".
#pragma once

#include <cstdint>
#include <vector>

#include "container/file/open_file.h"
#include "format/chunk.h"
#include "format/tensor.h"
#include "thalia/types.h"

namespace thalia::container {

/// Decodes a chunk whose entry was checked into exactly its raw_length bytes, after a check of the
/// CRC-32 of its stored bytes. @throws FormatError, IntegrityError, UnsupportedError.
void decode_stored(const format::ChunkEntry& chunk, ByteSpan stored, MutableByteSpan out);

/// Borrows the file and an entry that was validated. Immutable; any number of threads.
class ChunkReader {
 public:
  /// @throws FormatError if the first chunk's length cannot be one.
  ChunkReader(const detail::OpenFile& file, const format::TensorEntry& entry);

  /// Raw bytes of every chunk but the last.
  std::uint64_t chunk_bytes() const noexcept { return chunk_bytes_; }
  std::uint64_t raw_length(std::uint32_t i) const;
  /// Decodes chunk i into exactly raw_length(i) bytes, after a check of its entry and of the CRC-32
  /// of its stored bytes.
  /// @throws FormatError, IntegrityError, UnsupportedError.
  void decode(std::uint32_t i, MutableByteSpan out) const;
  /// The same for chunks i and i + 1, into memory that lies side by side.
  void decode_two(std::uint32_t i, MutableByteSpan out) const;
  /// Checks every entry without reading what is stored.
  void check_entries() const;
  /// Decodes all of them, on the file's threads.
  void decode_all(MutableByteSpan out) const;

 private:
  const format::ChunkEntry& checked_entry(std::uint32_t i) const;
  ByteSpan stored_bytes(const format::ChunkEntry& chunk, std::vector<std::byte>& buffer) const;

  const detail::OpenFile& file_;
  const format::TensorEntry& entry_;
  std::uint64_t chunk_bytes_;
};

}  // namespace thalia::container
