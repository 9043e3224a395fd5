// Finds the elements that changed, in one parallel pass that hashes the result as well. The list
// stays in memory while it is small; a larger one is only counted, and its arrays are made again,
// piece by piece and in order, each time they are written. A list that reaches its limit is given
// up early. Whether it is complete does not depend on the order of threads: only the sum of all
// pieces decides.

#include "state/delta/change_list.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "base/parallel.h"
#include "codec/changes/changed_elements.h"
#include "codec/cpu/scratch.h"
#include "format/delta.h"
#include "state/delta/spares.h"
#include "state/value/in_order.h"

namespace thalia::state {
namespace {

using format::kDeltaBlockElements;

static_assert(DeltaChange::kPiece % (16 * kDeltaBlockElements) == 0);

}  // namespace

std::uint64_t list_block(ByteSpan base, ByteSpan now, unsigned width, ListPart& out) {
  static_assert(kDeltaBlockElements == codec::kMostCompared);
  // Room for a whole block without writing to it beforehand: mostly few elements changed.
  thread_local codec::Scratch scratch;
  const std::size_t position_bytes =
      now.size() / width * sizeof(std::uint16_t) + codec::kChangedSlack;
  const codec::Scratch::Lease memory =
      scratch.take(position_bytes + now.size() + codec::kChangedSlack);
  auto* const positions = reinterpret_cast<std::uint16_t*>(memory.bytes().data());
  std::byte* const values = memory.bytes().data() + position_bytes;
  const std::size_t count =
      codec::find_changed(base, now, width, {.positions = positions, .values = values});
  out.positions.insert(out.positions.end(), positions, positions + count);
  out.values.insert(out.values.end(), values, values + count * width);
  return count;
}

void list_changes(ByteSpan base, ByteSpan now, unsigned width, ListPart& out) {
  const std::size_t block = kDeltaBlockElements * width;
  for (std::size_t at = 0; at < now.size(); at += block) {
    const std::size_t length = std::min(block, now.size() - at);
    list_block(base.subspan(at, length), now.subspan(at, length), width, out);
  }
}

ChangeList::ChangeList(const DeltaChange& change, unsigned width, std::uint64_t most,
                       std::uint64_t kept, bool with_base)
    : change_(change), width_(width) {
  const std::uint64_t pieces = change.pieces();
  const std::uint64_t block = kDeltaBlockElements * width;
  const std::uint64_t blocks_a_piece = DeltaChange::kPiece / block;
  std::vector<integrity::PieceDigest> digests(pieces);
  std::vector<Digest128> base_hashes(with_base ? pieces : 0);
  if (most != 0) counts_.resize(change.size() / block + (change.size() % block != 0));
  parts_.resize(most != 0 ? pieces : 0);
  std::atomic<std::uint64_t> listed{0};
  std::mutex dropped;
  Spares<DeltaChange::Pair> spares;
  parallel_for(pieces, change.options().save.work.threads, [&](std::size_t i) {
    std::unique_ptr<DeltaChange::Pair> own =
        spares.take([] { return std::make_unique<DeltaChange::Pair>(); });
    DeltaChange::Pair& pair = *own;
    change.read_piece(i, pair);
    // Once it is too long only the digests are still wanted.
    const bool lists = listed.load(std::memory_order_relaxed) < most;
    DeltaChange::Hasher hasher(pair, with_base);
    ListPart part;
    std::uint64_t number = i * blocks_a_piece;
    // A block is compared while it is in the cache, and then digested.
    while (hasher.done() < pair.now.size()) {
      const std::size_t at = hasher.done();
      const std::size_t length = std::min<std::size_t>(block, pair.now.size() - at);
      std::uint64_t count = 1;
      if (lists) {
        count =
            list_block(pair.base.subspan(at, length), pair.now.subspan(at, length), width, part);
        counts_[number++] = static_cast<std::uint32_t>(count);
      }
      hasher.update(length, count != 0);
    }
    hasher.finish(digests[i], with_base ? &base_hashes[i] : nullptr);
    spares.give(std::move(own));
    if (!lists) return;
    const std::uint64_t bytes = part.positions.size() * (2 + width);
    const std::uint64_t sum = listed.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    // Once one thread drops the parts they stay empty: all or none are kept.
    const std::lock_guard lock(dropped);
    if (sum > kept) {
      parts_.clear();
    } else if (!parts_.empty()) {
      parts_[i] = std::move(part);
    }
  });
  digest_ = integrity::join_pieces(digests);
  if (with_base) base_hash_ = integrity::xxh3_128(as_byte_span(base_hashes));
  complete_ = listed < most;
  if (listed > kept) parts_.clear();
  for (const std::uint32_t count : counts_) count_ += count;
}

std::vector<std::uint64_t> ChangeList::pointers() const {
  std::vector<std::uint64_t> out{0};
  out.reserve(counts_.size() + 1);
  for (const std::uint32_t count : counts_) out.push_back(out.back() + count);
  return out;
}

template <typename Take>
void ChangeList::for_each_part(Take take) const {
  if (!parts_.empty()) {
    for (const ListPart& part : parts_) take(part);
    return;
  }
  struct Made {
    DeltaChange::Pair pair;
    ListPart part;
  };
  for_each_in_order<Made>(
      change_.pieces(), change_.options().save.work.threads,
      [&](std::size_t i, Made& made) {
        made.part.positions.clear();
        made.part.values.clear();
        change_.read_piece(i, made.pair);
        list_changes(made.pair.base, made.pair.now, width_, made.part);
      },
      [&](const Made& made) { take(made.part); });
}

void ChangeList::write_positions(const Write& write) const {
  for_each_part([&](const ListPart& part) { write(as_byte_span(part.positions)); });
}

void ChangeList::write_values(const Write& write) const {
  for_each_part([&](const ListPart& part) { write(part.values); });
}

}  // namespace thalia::state
