// The two ends of every chain of sources: bytes in memory, and the digest of whatever comes out.

#include "state/delta/partwise_bytes.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/parallel.h"
#include "format/constants.h"

namespace thalia::state {

void TensorBytes::read(std::uint64_t begin, MutableByteSpan out) const {
  if (!out.empty()) std::memcpy(out.data(), tensor_.bytes().data() + begin, out.size());
}

ByteSpan TensorBytes::part(std::uint64_t begin, std::uint64_t length,
                           std::vector<std::byte>&) const {
  return tensor_.bytes().subspan(begin, length);
}

integrity::ContentDigest digest_of(const PartwiseBytes& source, unsigned threads,
                                   const std::stop_token& cancel) {
  // Pieces of the content hash: each thread hashes whole ones, and no tensor is ever made whole for
  // it.
  constexpr std::uint64_t kPiece = format::kContentPiece;
  const std::uint64_t size = source.size();
  std::vector<integrity::PieceDigest> digests(size / kPiece + (size % kPiece != 0));
  parallel_for(digests.size(), threads, [&](std::size_t i) {
    stop_if_cancelled(cancel);
    std::vector<std::byte> buffer;
    integrity::PieceHasher hasher;
    hasher.update(source.part(i * kPiece, std::min(kPiece, size - i * kPiece), buffer));
    digests[i] = hasher.finish();
  });
  return integrity::join_pieces(digests);
}

}  // namespace thalia::state
