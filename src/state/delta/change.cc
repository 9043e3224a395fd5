// The two sides of a change, read together in pieces, and an estimate of what each way to store it
// takes. A threshold is applied as the pieces are read, so that all that looks at a change sees the
// same bytes: those that will come out, not those that were given.

#include "state/delta/change.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/byte_xor.h"
#include "base/fail.h"
#include "codec/chunk/codec.h"
#include "format/constants.h"
#include "format/delta.h"
#include "state/delta/change_list.h"

namespace thalia::state {
namespace {

static_assert(DeltaChange::kPiece == format::kContentPiece);

// Bytes of a sample, and how many there are: they are encoded together, as 128 to 256 KiB, so that
// the codec's tables weigh nearly as they will.
constexpr std::uint64_t kSample = 16 << 10;
constexpr std::uint64_t kFewestSamples = 8;
constexpr std::uint64_t kSamples = 16;
// Where fewer than half of the blocks in them changed, they are that many times as long, and each
// is encoded alone: a row more or less among a few makes a difference.
constexpr std::uint64_t kLonger = 4;
constexpr std::size_t kBlock = 1024;
// A base that has to be made decodes a chunk for each place, and remembers eight: from this size on
// two samples lie together.
constexpr std::uint64_t kPairedFrom = 8 << 20;
// At most an eighth of a tensor is looked at, so that the estimate costs little beside the rest;
// but the fewest samples in any case.
constexpr std::uint64_t kSampledShare = 8;

constexpr codec::ElementLayout kPositions{codec::Content::integers, 2};

}  // namespace

void DeltaChange::read_pair(std::uint64_t begin, std::uint64_t length, Pair& out) const {
  out.base = base_.part(begin, length, out.base_buffer);
  // Without a threshold bytes are used where they lie.
  if (within_.is_exact()) {
    out.now = now_.part(begin, length, out.now_buffer);
    return;
  }
  out.now_buffer.resize(length);
  now_.read(begin, out.now_buffer);
  within_.apply(out.base, out.now_buffer);
  out.now = out.now_buffer;
}

void DeltaChange::read_piece(std::uint64_t i, Pair& out) const {
  stop_if_cancelled(options_.save.work.cancel);
  read_pair(i * kPiece, std::min(kPiece, size() - i * kPiece), out);
}

void DeltaChange::Hasher::update(std::size_t length, bool differs) {
  now_.update(pair_.now.subspan(done_, length));
  if (with_base_ && differs && !differs_) {
    differs_ = true;
    base_.update(pair_.base.first(done_));
  }
  if (differs_) base_.update(pair_.base.subspan(done_, length));
  done_ += length;
}

void DeltaChange::Hasher::finish(integrity::PieceDigest& now, Digest128* base) {
  now = now_.finish();
  if (base != nullptr) *base = differs_ ? base_.finish() : now.hash;
}

// Evenly over the tensor, from its beginning to its end, at multiples of 64 so that elements are
// whole. A small tensor is one sample.
DeltaChange::Samples DeltaChange::samples(std::uint64_t longer) const noexcept {
  const std::uint64_t sample = longer * kSample, fewest = kFewestSamples / longer;
  if (size() <= fewest * sample) return {.count = 1, .length = size(), .distance = 0};
  const std::uint64_t group = longer == 1 && size() > kPairedFrom ? 2 : 1;
  const std::uint64_t length = group * sample;
  const std::uint64_t count =
      std::clamp(size() / (kSampledShare * sample), fewest, kSamples) / group;
  return {.count = count, .length = length, .distance = (size() - length) / (count - 1) / 64 * 64};
}

bool DeltaChange::sample_differs(std::uint64_t begin, std::uint64_t length,
                                 std::vector<std::byte> (&buffers)[2]) const {
  stop_if_cancelled(options_.save.work.cancel);
  const ByteSpan base = base_.part(begin, length, buffers[0]);
  const ByteSpan now = now_.part(begin, length, buffers[1]);
  return std::memcmp(base.data(), now.data(), now.size()) != 0;
}

bool DeltaChange::samples_differ() const {
  std::vector<std::byte> buffers[2];
  const Samples where = samples(1);
  for (std::uint64_t i = 0; i < where.count; ++i)
    if (sample_differs(i * where.distance, where.length, buffers)) return true;
  return false;
}

bool DeltaChange::first_sample_differs() const {
  std::vector<std::byte> buffers[2];
  return sample_differs(0, samples(1).length, buffers);
}

// What lies in samples, one after the other.
struct DeltaChange::Taken {
  Pair pair;
  std::vector<std::byte> now;
  std::vector<std::byte> difference;
  ListPart list;
  std::uint64_t blocks = 0;
  std::uint64_t changed_blocks = 0;

  void clear() {
    now.clear();
    difference.clear();
    list.positions.clear();
    list.values.clear();
  }
};

void DeltaChange::take(std::uint64_t begin, std::uint64_t length, unsigned width,
                       Taken& out) const {
  stop_if_cancelled(options_.save.work.cancel);
  read_pair(begin, length, out.pair);
  const ByteSpan base = out.pair.base, now = out.pair.now;
  const std::size_t listed = out.list.positions.size();
  list_changes(base, now, width, out.list);
  // As far into their blocks as they will be: what they take depends on it.
  const auto first = static_cast<std::uint16_t>(begin / width % format::kDeltaBlockElements);
  for (std::uint16_t& position : std::span(out.list.positions).subspan(listed))
    position = static_cast<std::uint16_t>(position + first);
  out.now.insert(out.now.end(), now.begin(), now.end());
  out.difference.resize(out.now.size());
  xor_of(base, now, MutableByteSpan(out.difference).last(length));
  for (std::uint64_t at = 0; at < length; at += kBlock) {
    const std::uint64_t block = std::min<std::uint64_t>(kBlock, length - at);
    ++out.blocks;
    if (std::memcmp(base.data() + at, now.data() + at, block) != 0) ++out.changed_blocks;
  }
}

void DeltaChange::add_encoded(const Taken& taken, Estimate& out) const {
  const Codec codec = options_.save.compression.codec.value();
  const codec::ElementLayout layout = codec::element_layout(within_.dtype);
  std::vector<std::byte> scratch;
  const auto encoded = [&](codec::ElementLayout content, ByteSpan bytes) {
    codec::encode_chunk(codec, options_.save.compression.level, content, bytes, scratch);
    return static_cast<double>(scratch.size());
  };
  const ByteSpan positions = as_byte_span(taken.list.positions);
  out.list_raw += static_cast<double>(positions.size() + taken.list.values.size());
  out.list += encoded(kPositions, positions) + encoded(layout, taken.list.values);
  out.whole += encoded(layout, taken.now);
  out.difference += encoded(codec::of_difference(layout), taken.difference);
}

DeltaChange::Estimate DeltaChange::estimate(unsigned width) const {
  Estimate out;
  Samples where = samples(1);
  Taken taken;
  for (std::uint64_t i = 0; i < where.count; ++i)
    take(i * where.distance, where.length, width, taken);
  if (2 * taken.changed_blocks >= taken.blocks || where.count == 1) {
    // All samples as one chunk: the codec makes its choice once.
    add_encoded(taken, out);
  } else {
    where = samples(kLonger);
    for (std::uint64_t i = 0; i < where.count; ++i) {
      taken.clear();
      take(i * where.distance, where.length, width, taken);
      add_encoded(taken, out);
    }
  }
  const double scale =
      static_cast<double>(size()) / static_cast<double>(where.count * where.length);
  for (double* value : {&out.list_raw, &out.list, &out.whole, &out.difference}) *value *= scale;
  return out;
}

}  // namespace thalia::state
