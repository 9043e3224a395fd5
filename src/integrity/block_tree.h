// The block tree: leaf digests of fixed-size blocks, and the closing checksum over header and
// leaves. docs/format/format.md, "Block tree". Knows nothing of files: bytes come in as spans.
// Callers have checked block_log2, the leaf algorithm and all lengths.
#pragma once

#include <cstdint>
#include <memory>

#include "format/header.h"
#include "thalia/types.h"

namespace thalia::integrity {

/// Bytes of one leaf digest: 16 or 32.
std::uint64_t leaf_length(LeafAlgorithm algorithm) noexcept;

/// Number of blocks in [0, integrity_offset).
std::uint64_t block_count(std::uint64_t integrity_offset, unsigned block_log2) noexcept;

/// Computes the digest of one block that comes in parts. For block 0 the caller passes 256 zero
/// bytes in place of the header.
class LeafHasher {
 public:
  explicit LeafHasher(LeafAlgorithm algorithm);
  ~LeafHasher();
  LeafHasher(LeafHasher&&) noexcept;
  LeafHasher& operator=(LeafHasher&&) noexcept;
  void update(ByteSpan bytes);
  /// Writes leaf_length() bytes to `out` and starts over.
  void finish(MutableByteSpan out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes the leaf of block `block` of `file` (at least integrity_offset bytes) to `out`, which is
/// leaf_length() bytes. The fields integrity_offset, integrity_block_log2 and leaf_algorithm of the
/// header are used.
void hash_block(ByteSpan file, std::uint64_t block, const format::Header& header,
                MutableByteSpan out);

/// Whether `bytes`, all of block `block`, have the digest `leaf`. Uses the fields of the header
/// that hash_block() does.
bool bytes_match(ByteSpan bytes, std::uint64_t block, const format::Header& header, ByteSpan leaf);

/// Whether block `block` of `file`, which has at least integrity_offset bytes, has its digest in
/// `leaves`.
bool block_matches(ByteSpan file, std::uint64_t block, const format::Header& header,
                   ByteSpan leaves);

/// The same for a block that is in memory alone: `bytes` are all its bytes before integrity_offset.
bool leaf_matches(ByteSpan bytes, std::uint64_t block, const format::Header& header,
                  ByteSpan leaves);

/// SHA-256("THALIA-TREE-1" ‖ leaf_algorithm u8 ‖ block_log2 u8 ‖ integrity_offset u64 ‖ header ‖
/// leaves).
Digest256 closing_checksum(const format::Header& header, ByteSpan leaves);

}  // namespace thalia::integrity
