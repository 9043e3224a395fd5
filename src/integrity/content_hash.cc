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
#include "integrity/crc32.h"
#include "thalia/format/constants.h"

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
  if (in_piece_ == 0) return hash_of_digests(digests_);
  std::vector<Digest128> digests = digests_;
  digests.push_back(piece_.finish());
  return hash_of_digests(digests);
}

ContentDigest content_digest(ByteSpan bytes, unsigned threads) {
  const std::size_t pieces = (bytes.size() + kContentPiece - 1) / kContentPiece;
  std::vector<Digest128> digests(pieces);
  std::vector<std::uint32_t> crcs(pieces);
  const auto piece_at = [&](std::size_t i) {
    const std::size_t start = i * kContentPiece;
    return bytes.subspan(start, std::min<std::size_t>(kContentPiece, bytes.size() - start));
  };
  parallel_for(pieces, threads, [&](std::size_t i) {
    digests[i] = xxh3_128(piece_at(i));
    crcs[i] = crc32(piece_at(i));
  });
  ContentDigest result;
  for (std::size_t i = 0; i < pieces; ++i)
    result.crc32 = crc32_combine(result.crc32, crcs[i], piece_at(i).size());
  result.hash = hash_of_digests(digests);
  return result;
}

}  // namespace thalia::integrity
