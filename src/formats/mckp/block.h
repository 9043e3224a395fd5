// The payload of one block: pieces that are encoded and decoded on their own. docs/format/mckp.md,
// "Methods".
#pragma once

#include <cstdint>
#include <vector>

#include "io/memory/allocation_limit.h"
#include "thalia/formats/mckp.h"
#include "thalia/types.h"

namespace thalia::formats {

struct RawRange {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
};

/// The bytes of a tensor that make up `length` bytes of its coded form from `begin` on. In a
/// byte-grouped tensor these are other bytes, but as many.
RawRange mckp_raw_range(const MckpTensor& tensor, std::uint64_t begin, std::uint64_t length);

/// Whether a u32 with its length precedes each piece.
bool mckp_has_piece_lengths(Codec codec) noexcept;

/// Replaces `out` by one piece, without its length: the stored form of bytes [begin, end) of a
/// tensor's coded form. begin is a multiple of kMckpPiece; end is the next multiple, or the whole
/// length if that is less.
/// @param base empty unless the method is a delta.
void encode_mckp_piece(const MckpTensor& tensor, int level, ByteSpan raw, ByteSpan base,
                       std::uint64_t begin, std::uint64_t end, std::vector<std::byte>& out);

/// Its constructor finds everything that can be wrong with the lengths in a payload, so that memory
/// for the tensor is asked for only afterwards: a payload that is too short is reported as damage,
/// and not as a limit to raise.
class MckpBlock {
 public:
  /// Both borrowed. @throws FormatError (bad_compression, inconsistent).
  MckpBlock(const MckpTensor& tensor, ByteSpan payload);

  /// Fills `raw`, all of the tensor; of a delta it holds the base before. `budget` counts what that
  /// takes besides. @throws CompressionError; FormatError.
  void decode(MutableByteSpan raw, unsigned threads, io::MemoryBudget& budget) const;

 private:
  struct Piece {
    ByteSpan stored;
    std::uint64_t begin = 0;  ///< in the coded form
    std::uint64_t length = 0;
  };
  void split_frames(ByteSpan payload);
  void split_pieces(ByteSpan payload);
  void decode_piece(const Piece& piece, MutableByteSpan raw) const;
  void decode_codec(const Piece& piece, MutableByteSpan out) const;
  void add_products(MutableByteSpan raw, unsigned threads, io::MemoryBudget& budget) const;
  void add_steps(MutableByteSpan raw, unsigned threads, io::MemoryBudget& budget) const;

  const MckpTensor& tensor_;
  std::uint64_t length_;  ///< of the coded form
  std::vector<Piece> pieces_;
};

}  // namespace thalia::formats
