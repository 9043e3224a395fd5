// Pieces are handed out over all tensors of a batch in order. Who makes the last one of a tensor
// holds its digests against the content hash.
#include "store/follow/tensor_batch.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "container/read/tensor_reading.h"
#include "format/constants.h"

namespace thalia::store {
namespace {

// A line of the cache: what is compared and copied at a time.
constexpr std::size_t kLine = 64;
// Smaller tensors are not worth a page.
constexpr std::uint64_t kLeastSpared = 64 << 10;
// What is open at a time.
constexpr std::uint64_t kBatchBytes = 256 << 20;
constexpr std::size_t kBatchTensors = 256;
constexpr std::uint64_t kBuffers = 64 << 20;

// What of `now` is not in `old`, which is as long.
PatchedPiece difference(std::uint64_t begin, ByteSpan old, ByteSpan now) {
  PatchedPiece piece;
  for (std::size_t at = 0; at < now.size(); at += kLine) {
    const std::size_t length = std::min(kLine, now.size() - at);
    if (std::memcmp(old.data() + at, now.data() + at, length) == 0) continue;
    if (!piece.patches.empty() &&
        piece.patches.back().begin + piece.patches.back().length == begin + at) {
      piece.patches.back().length += length;
    } else {
      piece.patches.push_back({begin + at, length});
    }
    const ByteSpan line = now.subspan(at, length);
    piece.bytes.insert(piece.bytes.end(), line.begin(), line.end());
  }
  return piece;
}

}  // namespace

TensorBatch::TensorBatch(const detail::OpenFile& top, const ReadOptions& read,
                         FollowedValues& values, SpareMemory& spare)
    : top_(top), read_(read), values_(values), spare_(spare) {
  buffers_->keep(kBuffers);
}

void TensorBatch::add(state::TensorChain chain) {
  FollowedValue& value = values_.back();
  const std::uint64_t size = chain.size();
  const bool checks = read_.verification != Verification::off && chain.is_made();
  Making& making = makings_.emplace_back(std::move(chain), values_.size() - 1);
  making.piece = making.chain.piece_bytes();
  making.first = pieces_;
  const std::size_t pieces = size / making.piece + (size % making.piece != 0);
  making.left = pieces;
  if (checks) making.digests.resize(state::content_pieces(size));
  const TensorLayout& layout = value.facts.layout;
  if (!value.memory.empty()) {
    value.pieces.resize(pieces);
    value.value = Tensor::adopt(layout, value.memory, nullptr);
  } else if (size < kLeastSpared) {
    value.value = Tensor::filled(layout, [](MutableByteSpan) {});
    making.own = value.value.mutable_bytes();
  } else {
    const std::shared_ptr<const MutableByteSpan> bytes = spare_.take(size);
    making.own = *bytes;
    value.value = Tensor::adopt(layout, *bytes, bytes);
  }
  if (pieces == 0 && checks) making.chain.check(making.digests);
  pieces_ += pieces;
  bytes_ += size;
  if (bytes_ >= kBatchBytes || makings_.size() >= kBatchTensors) run();
}

void TensorBatch::run() {
  parallel_for(pieces_, read_.work.threads, [&](std::size_t i) {
    stop_if_cancelled(read_.work.cancel);
    // The last that begins there: those before it that do have no pieces.
    Making& making = *std::prev(std::ranges::upper_bound(makings_, i, {}, &Making::first));
    const FollowedTensor& facts = values_[making.value].facts;
    container::with_names(top_, facts.region, facts.name, [&] { make(making, i - making.first); });
  });
  makings_.clear();
  pieces_ = 0;
  bytes_ = 0;
}

void TensorBatch::make(Making& making, std::size_t piece) {
  const state::TensorChain& chain = making.chain;
  const std::uint64_t begin = piece * making.piece;
  const std::uint64_t length = std::min(making.piece, chain.size() - begin);
  const auto digests = making.digests.empty() ? std::span<integrity::PieceDigest>()
                                              : std::span(making.digests)
                                                    .subspan(begin / format::kContentPiece,
                                                             state::content_pieces(length));
  if (making.own.empty()) {
    FollowedValue& value = values_[making.value];
    const std::shared_ptr<const MutableByteSpan> buffer = buffers_->take(length);
    chain.make(begin, *buffer, digests);
    value.pieces[piece] = difference(begin, value.memory.subspan(begin, length), *buffer);
  } else {
    chain.make(begin, making.own.subspan(begin, length), digests);
  }
  if (--making.left == 0 && !making.digests.empty()) chain.check(making.digests);
}

}  // namespace thalia::store
