// Steps are counted and hashed in one parallel pass, from which the tables and their cost follow,
// and coded in another. The lengths of all chunks come before the first, so that coded bytes
// are kept while they are few; a tensor whose steps are many is coded again as it is written.
#include "state/delta/step_change.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "codec/step/step_encoder.h"
#include "io/system/process.h"
#include "state/delta/spares.h"
#include "state/value/in_order.h"

namespace thalia::state {
namespace {

// A multiple of the width of every element.
constexpr std::size_t kCachedPart = 128 << 10;

struct Counting {
  DeltaChange::Pair pair;
  codec::StepCounts counts;
};

}  // namespace

struct StepChange::Coding {
  Coding(const codec::StepKind& kind, const codec::StepCode& code) : encoder(kind, code) {}
  DeltaChange::Pair pair;
  codec::StepEncoder encoder;
};

StepChange::StepChange(const DeltaChange& change, const codec::StepKind& kind, bool with_base)
    : change_(change), kind_(kind) {
  std::vector<integrity::PieceDigest> digests(change.pieces());
  std::vector<Digest128> base_hashes(with_base ? change.pieces() : 0);
  Spares<Counting> spares;
  const auto make = [&] {
    return std::make_unique<Counting>(Counting{.pair = {}, .counts = codec::StepCounts(kind)});
  };
  parallel_for(change.pieces(), change.options().save.work.threads, [&](std::size_t i) {
    std::unique_ptr<Counting> own = spares.take(make);
    change.read_piece(i, own->pair);
    const DeltaChange::Pair& pair = own->pair;
    DeltaChange::Hasher hasher(pair, with_base);
    // A part is digested and counted while it is in the cache.
    while (hasher.done() < pair.now.size()) {
      const std::size_t at = hasher.done();
      const std::size_t length = std::min(kCachedPart, pair.now.size() - at);
      const ByteSpan base = pair.base.subspan(at, length), now = pair.now.subspan(at, length);
      hasher.update(length, !with_base || std::memcmp(base.data(), now.data(), length) != 0);
      own->counts.count(base, now);
    }
    hasher.finish(digests[i], with_base ? &base_hashes[i] : nullptr);
    spares.give(std::move(own));
  });
  digest_ = integrity::join_pieces(digests);
  if (with_base) base_hash_ = integrity::xxh3_128(as_byte_span(base_hashes));
  codec::StepCounts sum(kind);
  for (const std::unique_ptr<Counting>& one : spares.all()) sum.add(one->counts);
  changed_ = sum.changed();
  code_ = codec::choose_step_code(sum);
  // A chunk is a piece of the content hash at most: who reads piece by piece decodes each once.
  const auto piece =
      static_cast<std::uint8_t>(std::bit_width(DeltaChange::kPiece / kind.bytes) - 1);
  code_.chunk_log2 = std::min(code_.chunk_log2, piece);
}

void StepChange::encode_chunk(std::size_t number, Coding& coding,
                              std::vector<std::byte>& out) const {
  stop_if_cancelled(change_.options().save.work.cancel);
  const std::uint64_t length = code_.chunk_elements() * kind_.bytes;
  const std::uint64_t begin = number * length;
  change_.read_pair(begin, std::min(length, change_.size() - begin), coding.pair);
  coding.encoder.encode(coding.pair.base, coding.pair.now, out);
}

std::uint64_t StepChange::encode(std::uint64_t kept) {
  const std::size_t count = code_.chunks();
  lengths_.resize(count);
  chunks_.resize(count);
  std::atomic<std::uint64_t> bytes{0};
  io::ThreadLock dropped;
  Spares<Coding> spares;
  parallel_for(count, change_.options().save.work.threads, [&](std::size_t i) {
    std::unique_ptr<Coding> own =
        spares.take([&] { return std::make_unique<Coding>(kind_, code_); });
    std::vector<std::byte> chunk;
    encode_chunk(i, *own, chunk);
    spares.give(std::move(own));
    lengths_[i] = static_cast<std::uint32_t>(chunk.size());
    const std::uint64_t sum = bytes.fetch_add(chunk.size()) + chunk.size();
    // Once one thread drops the chunks they stay empty: all or none are kept.
    const std::lock_guard lock(dropped);
    if (sum > kept) {
      chunks_.clear();
    } else if (!chunks_.empty()) {
      chunks_[i] = std::move(chunk);
    }
  });
  return codec::step_head_bytes(code_) + bytes;
}

void StepChange::write(const Write& write) const {
  write(codec::step_head(code_, lengths_));
  if (!chunks_.empty()) {
    for (const std::vector<std::byte>& chunk : chunks_) write(chunk);
    return;
  }
  struct Made {
    std::unique_ptr<Coding> coding;
    std::vector<std::byte> chunk;
  };
  for_each_in_order<Made>(
      code_.chunks(), change_.options().save.work.threads,
      [&](std::size_t i, Made& made) {
        if (!made.coding) made.coding = std::make_unique<Coding>(kind_, code_);
        made.chunk.clear();
        encode_chunk(i, *made.coding, made.chunk);
      },
      [&](const Made& made) { write(made.chunk); });
}

}  // namespace thalia::state
