// Places are fixed in the constructor, so that adopt() only sets pointers and cannot fail. The copy
// is cut into equal ranges, not into tensors: one large tensor keeps all threads as busy as ten
// thousand small ones.
#include "container/background/snapshot_plan.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/stream_copy.h"
#include "format/extent.h"
#include "format/payload.h"

namespace thalia::container {
namespace {

// What a thread copies at a time: two whole huge pages, so that no two threads fault the same one.
constexpr std::uint64_t kCopyBytes = 4 << 20;

}  // namespace

SnapshotPlan::SnapshotPlan(const FilePlan& plan) {
  pieces_.reserve(plan.tensors.size());
  payloads_.reserve(plan.tensors.size());
  for (const TensorPlan& tensor : plan.tensors) {
    const bool is_streamed = tensor.pieces.empty();
    begin_payload(is_streamed ? 0 : tensor.logical_length);
    for (const ByteSpan piece : tensor.pieces) add_piece(piece);
  }
}

void SnapshotPlan::add(ByteSpan payload) {
  begin_payload(payload.size());
  add_piece(payload);
}

void SnapshotPlan::begin_payload(std::uint64_t length) {
  if (length != 0) bytes_ = format::align_up(bytes_, format::payload_alignment(length));
  payloads_.push_back({bytes_, length});
}

void SnapshotPlan::add_piece(ByteSpan piece) {
  if (piece.empty()) return;
  pieces_.push_back({{bytes_, piece.size()}, piece.data()});
  bytes_ += piece.size();
}

ByteSpan SnapshotPlan::payload(std::size_t index, ByteSpan memory) const noexcept {
  return memory.subspan(payloads_[index].offset, payloads_[index].length);
}

void SnapshotPlan::copy(MutableByteSpan memory, unsigned threads) const {
  parallel_for((bytes_ + kCopyBytes - 1) / kCopyBytes, threads, [&](std::size_t i) {
    copy_range(memory, i * kCopyBytes, std::min(bytes_, (i + 1) * kCopyBytes));
  });
}

void SnapshotPlan::copy_range(MutableByteSpan memory, std::uint64_t begin,
                              std::uint64_t end) const noexcept {
  auto piece = std::partition_point(pieces_.begin(), pieces_.end(), [&](const Piece& candidate) {
    return candidate.offset + candidate.length <= begin;
  });
  for (; piece != pieces_.end() && piece->offset < end; ++piece) {
    const std::uint64_t from = std::max(begin, piece->offset);
    const std::uint64_t to = std::min(end, piece->offset + piece->length);
    stream_copy({piece->bytes + (from - piece->offset), to - from}, memory.data() + from);
  }
  // Stores past the caches are not ordered with others. This puts them before the end of
  // parallel_for(), which others wait for.
  fence_stream_copies();
}

void SnapshotPlan::adopt(FilePlan& plan, ByteSpan memory) const noexcept {
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    TensorPlan& tensor = plan.tensors[i];
    if (tensor.pieces.empty()) continue;
    tensor.pieces = payload(i, memory);
  }
}

}  // namespace thalia::container
