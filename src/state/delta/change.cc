// The two sides of a change, read together in pieces, and an estimate of what each way to store it
// takes. A threshold is applied as the pieces are read, so that all that looks at a change sees the
// same bytes: those that will come out, not those that were given.

#include "state/delta/change.h"

#include <algorithm>
#include <cstring>

#include "base/byte_xor.h"
#include "base/fail.h"
#include "codec/chunk/codec.h"
#include "format/constants.h"
#include "state/delta/change_list.h"

namespace thalia::state {
namespace {

static_assert(DeltaChange::kPiece == format::kContentPiece);

// Bytes of a sample, and how many samples at most: 1 MiB of a large tensor in all.
constexpr std::uint64_t kSample = 64 << 10;
constexpr std::uint64_t kSamples = 16;
// At most an eighth of a tensor is looked at, so that the estimate costs little beside the rest;
// but two samples in any case.
constexpr std::uint64_t kSampledShare = 8;

constexpr codec::ElementLayout kPositions{codec::Content::integers, 2};

std::size_t encoded_size(Codec codec, int level, codec::ElementLayout layout, ByteSpan bytes,
                         std::vector<std::byte>& scratch) {
  codec::encode_chunk(codec, level, layout, bytes, scratch);
  return scratch.size();
}

std::uint64_t sample_count(std::uint64_t size) {
  if (size <= kSample) return 1;
  return std::clamp<std::uint64_t>(size / (kSampledShare * kSample), 2, kSamples);
}

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

void DeltaChange::Hasher::finish(integrity::PieceDigest& now, integrity::PieceDigest* base) {
  now = now_.finish();
  if (base != nullptr) *base = differs_ ? base_.finish() : now;
}

std::uint64_t DeltaChange::sample_length() const noexcept {
  return std::min(size(), kSample);
}

// Evenly over the tensor, from its beginning to its end, at multiples of 64 so that elements are
// whole.
std::uint64_t DeltaChange::sample_begin(std::uint64_t i) const noexcept {
  const std::uint64_t count = sample_count(size());
  return count == 1 ? 0 : (size() - sample_length()) / (count - 1) * i / 64 * 64;
}

bool DeltaChange::samples_differ() const {
  std::vector<std::byte> buffers[2];
  for (std::uint64_t i = 0; i < sample_count(size()); ++i) {
    stop_if_cancelled(options_.save.work.cancel);
    const ByteSpan base = base_.part(sample_begin(i), sample_length(), buffers[0]);
    const ByteSpan now = now_.part(sample_begin(i), sample_length(), buffers[1]);
    if (std::memcmp(base.data(), now.data(), now.size()) != 0) return true;
  }
  return false;
}

DeltaChange::Estimate DeltaChange::estimate(unsigned width) const {
  const std::uint64_t count = sample_count(size());
  const std::uint64_t length = sample_length();
  const Codec codec = options_.save.compression.codec.value();
  const int level = options_.save.compression.level;
  const codec::ElementLayout layout = codec::element_layout(within_.dtype);
  const codec::ElementLayout differences = codec::of_difference(layout);
  Pair pair;
  std::vector<std::byte> difference;
  std::vector<std::byte> scratch;
  Estimate out;
  for (std::uint64_t i = 0; i < count; ++i) {
    stop_if_cancelled(options_.save.work.cancel);
    read_pair(sample_begin(i), length, pair);
    ListPart part;
    list_changes(pair.base, pair.now, width, part);
    const ByteSpan positions = as_byte_span(part.positions);
    out.list_raw += static_cast<double>(positions.size() + part.values.size());
    out.list += static_cast<double>(encoded_size(codec, level, kPositions, positions, scratch) +
                                    encoded_size(codec, level, layout, part.values, scratch));
    out.whole += static_cast<double>(encoded_size(codec, level, layout, pair.now, scratch));
    difference.resize(length);
    xor_of(pair.base, pair.now, difference);
    out.difference +=
        static_cast<double>(encoded_size(codec, level, differences, difference, scratch));
  }
  const double scale = static_cast<double>(size()) / static_cast<double>(count * length);
  for (double* value : {&out.list_raw, &out.list, &out.whole, &out.difference}) *value *= scale;
  return out;
}

}  // namespace thalia::state
