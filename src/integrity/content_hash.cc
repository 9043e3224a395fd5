// The content hash is a hash over the hashes of pieces of 1 MiB, so that pieces can be hashed on
// any thread and joined in order; the CRC-32 of the whole is combined from theirs. However the
// bytes are cut into calls and threads, the result is the same.
#include "integrity/content_hash.h"

// The dispatching header puts functions in place of xxhash.h's that choose by the processor they
// run on: AVX2 and AVX-512 are beyond what the compiler may assume of x86-64.
#ifdef THALIA_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <algorithm>
#include <cstring>
#include <new>

#include "base/parallel.h"
#include "format/constants.h"
#include "integrity/crc32.h"

namespace thalia::integrity {
namespace {

using format::kContentPiece;

XXH3_state_t* as_state(void* state) {
  return static_cast<XXH3_state_t*>(state);
}

Digest128 canonical(XXH128_hash_t hash) noexcept {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  Digest128 digest;
  static_assert(sizeof(digest) == sizeof(bytes));
  std::memcpy(digest.bytes, bytes.digest, sizeof(digest));
  return digest;
}

Digest128 hash_of_digests(const std::vector<Digest128>& digests) noexcept {
  return xxh3_128(as_byte_span(digests));
}

}  // namespace

Digest128 xxh3_128(ByteSpan bytes) noexcept {
  return canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

Xxh3::Xxh3() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  reset();
}

Xxh3::~Xxh3() = default;
Xxh3::Xxh3(Xxh3&&) noexcept = default;
Xxh3& Xxh3::operator=(Xxh3&&) noexcept = default;

void Xxh3::Free::operator()(void* state) const noexcept {
  XXH3_freeState(as_state(state));
}

void Xxh3::reset() noexcept {
  XXH3_128bits_reset(as_state(state_.get()));
}

void Xxh3::update(ByteSpan bytes) noexcept {
  XXH3_128bits_update(as_state(state_.get()), bytes.data(), bytes.size());
}

Digest128 Xxh3::finish() const noexcept {
  return canonical(XXH3_128bits_digest(as_state(state_.get())));
}

void ContentHasher::update(ByteSpan bytes) {
  while (!bytes.empty()) {
    const ByteSpan part = bytes.first(std::min(bytes.size(), kContentPiece - in_piece_));
    bytes = bytes.subspan(part.size());
    crc32_ = integrity::crc32(part, crc32_);
    // A whole piece at once: part can only be as long where no piece is open.
    if (part.size() == kContentPiece) {
      digests_.push_back(xxh3_128(part));
      continue;
    }
    piece_.update(part);
    in_piece_ += part.size();
    if (in_piece_ == kContentPiece) {
      digests_.push_back(piece_.finish());
      piece_.reset();
      in_piece_ = 0;
    }
  }
}

Digest128 ContentHasher::content_hash() const {
  // The open piece is added to a copy: update() may go on afterwards.
  if (in_piece_ == 0) return hash_of_digests(digests_);
  std::vector<Digest128> digests = digests_;
  digests.push_back(piece_.finish());
  return hash_of_digests(digests);
}

void PieceHasher::update(ByteSpan part) noexcept {
  crc32_ = integrity::crc32(part, crc32_);
  hasher_.update(part);
  length_ += static_cast<std::uint32_t>(part.size());
}

PieceDigest PieceHasher::finish() noexcept {
  const PieceDigest digest{crc32_, length_, hasher_.finish()};
  hasher_.reset();
  crc32_ = length_ = 0;
  return digest;
}

ContentDigest join_pieces(std::span<const PieceDigest> pieces) {
  std::vector<Digest128> digests;
  digests.reserve(pieces.size());
  ContentDigest result;
  for (const PieceDigest& piece : pieces) {
    // Order matters: a CRC-32 is combined from left to right.
    result.crc32 = crc32_combine(result.crc32, piece.crc32, piece.length);
    digests.push_back(piece.hash);
  }
  result.hash = hash_of_digests(digests);
  return result;
}

ContentDigest content_digest(ByteSpan bytes, unsigned threads) {
  std::vector<PieceDigest> pieces((bytes.size() + kContentPiece - 1) / kContentPiece);
  parallel_for(pieces.size(), threads, [&](std::size_t i) {
    const ByteSpan piece = bytes.subspan(
        i * kContentPiece, std::min<std::size_t>(kContentPiece, bytes.size() - i * kContentPiece));
    pieces[i] = {crc32(piece), static_cast<std::uint32_t>(piece.size()), xxh3_128(piece)};
  });
  return join_pieces(pieces);
}

}  // namespace thalia::integrity
