// After the BLAKE3 paper (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020-01-09), section 2. The
// input is cut into chunks of 1024 bytes, each a chain of compressions of 64 bytes; chunks are the
// leaves of a binary tree whose left subtrees are full. A stack holds one chaining value for each
// full subtree that waits for its right sibling: those are the 1 bits of the count of chunks.
#include "integrity/blake3.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "format/little_endian.h"

namespace thalia::integrity {
namespace {

using Words8 = std::array<std::uint32_t, 8>;
using Words16 = std::array<std::uint32_t, 16>;

constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kChunkBytes = 1024;
// 2^64 bytes are 2^54 chunks.
constexpr std::size_t kMostSubtrees = 54;

// Table 1: of SHA-256 and BLAKE2s.
constexpr Words8 kInitial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
// Table 2.
constexpr std::array<unsigned, 16> kPermutation = {2, 6,  3,  10, 7, 0,  4,  13,
                                                   1, 11, 12, 5,  9, 14, 15, 8};
// Table 3.
enum Blake3Flag : std::uint32_t { kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRoot = 8 };

void mix(Words16& v, unsigned a, unsigned b, unsigned c, unsigned d, std::uint32_t x,
         std::uint32_t y) noexcept {
  v[a] = v[a] + v[b] + x;
  v[d] = std::rotr(v[d] ^ v[a], 16);
  v[c] = v[c] + v[d];
  v[b] = std::rotr(v[b] ^ v[c], 12);
  v[a] = v[a] + v[b] + y;
  v[d] = std::rotr(v[d] ^ v[a], 8);
  v[c] = v[c] + v[d];
  v[b] = std::rotr(v[b] ^ v[c], 7);
}

// What a compression takes. The last one of all is made again as the root, so it is kept.
struct Blake3Compression {
  Words8 chaining;
  Words16 block;
  std::uint64_t counter;
  std::uint32_t block_length;
  std::uint32_t flags;

  // The first half of the output: a chaining value, and of the root the digest.
  Words8 output(std::uint32_t more_flags = 0) const noexcept {
    Words16 v;
    std::copy(chaining.begin(), chaining.end(), v.begin());
    std::copy_n(kInitial.begin(), 4, v.begin() + 8);
    v[12] = static_cast<std::uint32_t>(counter);
    v[13] = static_cast<std::uint32_t>(counter >> 32);
    v[14] = block_length;
    v[15] = flags | more_flags;
    Words16 m = block;
    for (int round = 0; round < 7; ++round) {
      for (unsigned i = 0; i < 4; ++i)  // columns
        mix(v, i, i + 4, i + 8, i + 12, m[2 * i], m[2 * i + 1]);
      for (unsigned i = 0; i < 4; ++i)  // diagonals
        mix(v, i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12, m[8 + 2 * i], m[9 + 2 * i]);
      Words16 permuted;
      for (unsigned i = 0; i < 16; ++i) permuted[i] = m[kPermutation[i]];
      m = permuted;
    }
    Words8 out;
    for (unsigned i = 0; i < 8; ++i) out[i] = v[i] ^ v[i + 8];
    return out;
  }
};

Words16 words_of(ByteSpan block) noexcept {
  std::array<format::le32, 16> words;
  std::memset(words.data(), 0, sizeof words);
  if (!block.empty()) std::memcpy(words.data(), block.data(), block.size());
  Words16 out;
  std::copy(words.begin(), words.end(), out.begin());
  return out;
}

// All but the last compression of a chunk of at most 1024 bytes.
Blake3Compression chunk_end(ByteSpan chunk, std::uint64_t number) noexcept {
  Words8 chaining = kInitial;
  std::uint32_t flags = kChunkStart;
  while (chunk.size() > kBlockBytes) {
    chaining =
        Blake3Compression{chaining, words_of(chunk.first(kBlockBytes)), number, kBlockBytes, flags}
            .output();
    flags = 0;
    chunk = chunk.subspan(kBlockBytes);
  }
  return {chaining, words_of(chunk), number, static_cast<std::uint32_t>(chunk.size()),
          flags | kChunkEnd};
}

Blake3Compression parent(const Words8& left, const Words8& right) noexcept {
  Words16 block;
  std::copy(left.begin(), left.end(), block.begin());
  std::copy(right.begin(), right.end(), block.begin() + 8);
  return {kInitial, block, 0, kBlockBytes, kParent};
}

}  // namespace

Digest256 blake3(ByteSpan bytes) noexcept {
  std::array<Words8, kMostSubtrees> subtrees;
  std::size_t waiting = 0;
  std::uint64_t chunks = 0;
  // The last chunk, full or not, stays out of the loop: only after it the tree is known.
  for (; bytes.size() > kChunkBytes; bytes = bytes.subspan(kChunkBytes)) {
    Words8 value = chunk_end(bytes.first(kChunkBytes), chunks++).output();
    for (std::uint64_t count = chunks; (count & 1) == 0; count >>= 1)
      value = parent(subtrees[--waiting], value).output();
    subtrees[waiting++] = value;
  }
  Blake3Compression last = chunk_end(bytes, chunks);
  while (waiting > 0) last = parent(subtrees[--waiting], last.output());
  const Words8 root = last.output(kRoot);
  std::array<format::le32, 8> words;
  std::copy(root.begin(), root.end(), words.begin());
  Digest256 digest;
  static_assert(sizeof words == sizeof digest.bytes);
  std::memcpy(digest.bytes, words.data(), sizeof words);
  return digest;
}

}  // namespace thalia::integrity
