#include "codec/chunk/choice.h"

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "codec/chunk/filter.h"
#include "codec/cpu/scratch.h"
#include "codec/frame/lz4_frame.h"
#include "codec/frame/zstd_frame.h"
#include "codec/rans/plane_entropy.h"

namespace thalia::codec {
namespace {

using format::Filter;

// Of a chunk: a thirtieth where it has 1 MiB. Stretches are whole elements.
constexpr std::size_t kPieces = 4;
constexpr std::size_t kPieceBytes = 8 << 10;
constexpr std::size_t kSample = kPieces * kPieceBytes;
// Stretches of a shorter look, and how many times smaller what repeats becomes.
constexpr std::size_t kGlance = 1 << 10;
constexpr std::size_t kRepeats = 2;
// Filters compare at the fastest level as they do at others.
constexpr int kProbeLevel = 1;

// Evenly from the chunk, the first piece from its beginning and the last near its end.
ByteSpan sample(ByteSpan raw, std::size_t piece_bytes, MutableByteSpan out) {
  if (raw.size() <= kPieces * piece_bytes) return raw;
  const std::size_t step = (raw.size() - piece_bytes) / (kPieces - 1) / 8 * 8;
  for (std::size_t i = 0; i < kPieces; ++i)
    std::memcpy(out.data() + i * piece_bytes, raw.data() + i * step, piece_bytes);
  return out;
}

std::size_t encoded_size(Codec codec, ByteSpan bytes) {
  thread_local std::vector<std::byte> out;
  codec == Codec::zstd ? zstd_encode(kProbeLevel, bytes, out) : lz4_encode(kProbeLevel, bytes, out);
  return out.size();
}

struct FilterTrial {
  Filter filter = Filter::none;
  std::size_t size = 0;  ///< of the sample, filtered and encoded
};

FilterTrial smallest_filter(Codec codec, ElementLayout layout, ByteSpan raw) {
  const std::span<const Filter> filters = filters_for(layout);
  thread_local Scratch scratch;
  const Scratch::Lease memory = scratch.take(2 * kSample);
  const ByteSpan bytes = sample(raw, kPieceBytes, memory.bytes().first(kSample));
  const MutableByteSpan filtered = memory.bytes().subspan(kSample, bytes.size());
  FilterTrial best{.filter = filters.front(), .size = encoded_size(codec, bytes)};
  for (const Filter filter : filters.subspan(1)) {
    apply_filter(filter, bytes, filtered);
    // Planes of a whole chunk are longer than a codec's blocks, so each gets tables of its own.
    const std::size_t planes = bytes.size() < raw.size() ? layout.element_bytes : 1;
    std::size_t size = 0;
    for (std::size_t i = 0; i < planes; ++i)
      size +=
          encoded_size(codec, filtered.subspan(i * (kSample / planes), filtered.size() / planes));
    if (size < best.size) best = {filter, size};
  }
  return best;
}

Filter filter_for(Codec codec, ElementLayout layout, ByteSpan raw) {
  const std::span<const Filter> filters = filters_for(layout);
  return filters.size() == 1 ? filters.front() : smallest_filter(codec, layout, raw).filter;
}

std::size_t entropy_coded_size(ElementLayout layout, ByteSpan raw) {
  std::array<std::byte, kSample> bytes;
  std::vector<std::byte> coded;
  plane_entropy_encode(layout, sample(raw, kPieceBytes, bytes), coded);
  return coded.size();
}

// A glance at a few KiB: codes for single bytes make nothing of what repeats, or is zero.
bool repeats(ByteSpan raw) {
  std::array<std::byte, kPieces * kGlance> bytes;
  const ByteSpan seen = sample(raw, kGlance, bytes);
  return kRepeats * encoded_size(Codec::lz4, seen) < seen.size();
}

ChunkChoice choose_for_elements(Codec wanted, ElementLayout layout, ByteSpan raw) {
  const bool packable = layout.content == Content::floats && layout.element_bytes > 1;
  const bool codable = layout.content == Content::floats || layout.content == Content::integers;
  if (!codable || repeats(raw))
    return {Codec::zstd, filter_for(Codec::zstd, layout, raw), kProbeLevel};
  // Numbers that ascend, as ids and offsets do, are little more than their differences. They are
  // too rarely the bulk of a checkpoint for the trial to be felt.
  if (layout.content == Content::integers && layout.element_bytes >= 4) {
    const FilterTrial trial = smallest_filter(Codec::zstd, layout, raw);
    if (trial.size < entropy_coded_size(layout, raw))
      return {Codec::zstd, trial.filter, kProbeLevel};
  }
  return {wanted == Codec::packed_exponents && packable ? Codec::packed_exponents
                                                        : Codec::plane_entropy};
}

}  // namespace

ChunkChoice choose_coding(Codec wanted, int level, ElementLayout layout, ByteSpan raw) {
  if (wanted == Codec::store) return {};
  if (wanted == Codec::plane_entropy || wanted == Codec::packed_exponents)
    return choose_for_elements(wanted, layout, raw);
  return {wanted, filter_for(wanted, layout, raw), level};
}

}  // namespace thalia::codec
