// Each piece is digested once, by one thread, into its own record: no lock. `missing` of a tensor
// counts pieces to go; the thread that takes it to zero sees all records and joins them, CRCs by
// crc32_combine(), hashes by hashing their list. Pieces do not depend on how a save cuts payloads,
// so every way gives the same digest.
#include "container/write/payload_digest.h"

#include <algorithm>

#include "container/plan/piece_range.h"
#include "format/constants.h"
#include "integrity/crc32.h"

namespace thalia::container {
namespace {

// The CRC and the hash take turns in steps that stay in the first-level cache.
constexpr std::size_t kDigestStride = 64 * 1024;

// Logical bytes of a tensor that its stored bytes before an offset of the file stand for.
std::uint64_t logical_before(const TensorPlan& tensor, std::uint64_t offset) {
  if (offset <= tensor.stored_offset) return 0;
  const std::uint64_t stored = offset - tensor.stored_offset;
  if (stored >= tensor.stored_length) return tensor.logical_length;
  return static_cast<std::uint64_t>(
      static_cast<double>(tensor.logical_length) *
      (static_cast<double>(stored) / static_cast<double>(tensor.stored_length)));
}

}  // namespace

PayloadDigest::PayloadDigest(FilePlan& plan, std::span<const std::uint32_t> file_order)
    : plan_(plan), slots_(plan.tensors.size(), kNone) {
  static_assert(format::kContentPiece <= UINT32_MAX);
  for (const std::uint32_t i : file_order) {
    // Streamed ones are digested as they come.
    if (plan.tensors[i].streamed) continue;
    if (plan.tensors[i].digested) {
      if (plan.tensors[i].stored_length != 0) known_.push_back(i);
      continue;
    }
    if (plan.tensors[i].logical_length == 0) {
      complete(i, 0);
      continue;
    }
    slots_[i] = static_cast<std::uint32_t>(tensors_.size());
    tensors_.push_back(i);
  }
  progress_ = std::make_unique<Progress[]>(tensors_.size());
  for (std::size_t slot = 0; slot < tensors_.size(); ++slot) {
    const TensorPlan& tensor = plan.tensors[tensors_[slot]];
    progress_[slot].first_piece = pieces_.size();
    for (std::uint64_t at = 0; at < tensor.logical_length; at += format::kContentPiece) {
      pieces_.push_back({at, tensors_[slot],
                         static_cast<std::uint32_t>(
                             std::min(format::kContentPiece, tensor.logical_length - at))});
    }
    progress_[slot].missing = pieces_.size() - progress_[slot].first_piece;
  }
}

std::size_t PayloadDigest::first_piece(std::uint64_t offset) const noexcept {
  const auto found = std::partition_point(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
    return plan_.tensors[piece.tensor].stored_offset + piece.begin < offset;
  });
  return static_cast<std::size_t>(found - pieces_.begin());
}

std::uint64_t PayloadDigest::known_bytes(std::uint64_t begin, std::uint64_t end) const noexcept {
  std::uint64_t sum = 0;
  auto found = std::partition_point(known_.begin(), known_.end(), [&](std::uint32_t tensor) {
    const TensorPlan& known = plan_.tensors[tensor];
    return known.stored_offset + known.stored_length <= begin;
  });
  for (; found != known_.end() && plan_.tensors[*found].stored_offset < end; ++found)
    sum +=
        logical_before(plan_.tensors[*found], end) - logical_before(plan_.tensors[*found], begin);
  return sum;
}

std::optional<std::uint32_t> PayloadDigest::digest(std::size_t number, integrity::Xxh3& hasher) {
  Piece& piece = pieces_[number];
  const TensorPlan& tensor = plan_.tensors[piece.tensor];
  bool whole = false;
  hasher.reset();
  for_each_part(tensor.pieces, piece.begin, piece.begin + piece.length, [&](ByteSpan part) {
    // The hash of a short piece at once is much faster than the one in steps.
    whole = part.size() == piece.length && part.size() <= kDigestStride;
    if (whole) piece.digest = integrity::xxh3_128(part);
    for (std::size_t at = 0; at < part.size(); at += kDigestStride) {
      const ByteSpan stride = part.subspan(at, std::min(kDigestStride, part.size() - at));
      piece.crc32 = integrity::crc32(stride, piece.crc32);
      if (!whole) hasher.update(stride);
    }
  });
  if (!whole) piece.digest = hasher.finish();
  Progress& progress = progress_[slots_[piece.tensor]];
  if (progress.missing.fetch_sub(1, std::memory_order_acq_rel) != 1) return std::nullopt;
  complete(piece.tensor, progress.first_piece);
  return piece.tensor;
}

// By where pieces begin: chunks and pieces have different sizes, and each piece has to be digested
// for exactly one chunk.
void PayloadDigest::digest_from(std::uint32_t tensor, std::uint64_t begin, std::uint64_t end,
                                integrity::Xxh3& hasher) {
  if (begin == end || slots_[tensor] == kNone) return;
  const std::size_t first = progress_[slots_[tensor]].first_piece;
  const auto pieces_before = [](std::uint64_t at) {
    return (at + format::kContentPiece - 1) / format::kContentPiece;
  };
  for (std::uint64_t i = pieces_before(begin); i < pieces_before(end); ++i)
    digest(first + i, hasher);
}

void PayloadDigest::complete(std::uint32_t id, std::size_t first) {
  TensorPlan& tensor = plan_.tensors[id];
  const std::size_t count =
      (tensor.logical_length + format::kContentPiece - 1) / format::kContentPiece;
  std::vector<Digest128> digests(count);
  std::uint32_t crc = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Piece& piece = pieces_[first + i];
    crc = integrity::crc32_combine(crc, piece.crc32, piece.length);
    digests[i] = piece.digest;
  }
  tensor.digest = {crc, integrity::xxh3_128(as_byte_span(digests))};
}

}  // namespace thalia::container
