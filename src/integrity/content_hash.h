// XXH3-128 and the content hash of a tensor: XXH3-128 over the digests of its consecutive 1 MiB
// pieces, so that it can be computed in parallel. docs/format/format.md, "Content hash".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "thalia/types.h"

namespace thalia::integrity {

/// XXH3-128, seed 0, canonical byte order.
Digest128 xxh3_128(ByteSpan bytes) noexcept;

class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(Xxh3&&) noexcept;
  Xxh3& operator=(Xxh3&&) noexcept;
  void reset() noexcept;
  void update(ByteSpan bytes) noexcept;
  Digest128 finish() const noexcept;

 private:
  struct Free {
    void operator()(void* state) const noexcept;
  };
  std::unique_ptr<void, Free> state_;
};

/// CRC-32 and content hash of a byte sequence that comes in pieces of any size.
class ContentHasher {
 public:
  void update(ByteSpan bytes);
  std::uint32_t crc32() const noexcept { return crc32_; }
  Digest128 content_hash() const;

 private:
  std::uint32_t crc32_ = 0;
  std::uint64_t in_piece_ = 0;  ///< bytes already in the piece that is open
  Xxh3 piece_;
  std::vector<Digest128> digests_;
};

struct ContentDigest {
  std::uint32_t crc32 = 0;
  Digest128 hash;
};

/// The same for one piece.
struct PieceDigest {
  std::uint32_t crc32 = 0;
  std::uint32_t length = 0;
  Digest128 hash;
};

/// Computes the digests of pieces one after the other, each of which may come in parts.
class PieceHasher {
 public:
  void update(ByteSpan part) noexcept;
  /// The digest of what came since the last call.
  PieceDigest finish() noexcept;

 private:
  std::uint32_t crc32_ = 0;
  std::uint32_t length_ = 0;
  Xxh3 hasher_;
};

/// The digest of the sequence that the pieces make up. All but the last are 1 MiB long.
ContentDigest join_pieces(std::span<const PieceDigest> pieces);

/// The same for a span, on up to `threads` threads (0: one a core).
ContentDigest content_digest(ByteSpan bytes, unsigned threads);

}  // namespace thalia::integrity
