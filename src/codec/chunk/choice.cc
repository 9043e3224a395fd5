// Chooses on a sample, so that a choice costs a few per cent of the encoding and not a second
// encoding. The sample and every comparison depend on the arguments alone: no clock, no random
// numbers. So equal chunks are stored as equal bytes on every machine and by any number of threads.
// A wrong guess costs space, never data: encode_chunk() compares the real sizes afterwards.
#include "codec/chunk/choice.h"

#include <algorithm>
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

// Four stretches of 8 KiB: a thirtieth of a chunk of 1 MiB, spread over all of it. 8 KiB are enough
// for the codecs to find their matches, and a multiple of every element size.
constexpr std::size_t kPieces = 4;
constexpr std::size_t kPieceBytes = 8 << 10;
constexpr std::size_t kSample = kPieces * kPieceBytes;
// A shorter look, of four stretches of 4 KiB: what LZ4 makes at least two times smaller repeats. It
// finds nothing in noise, so that if it saves a 32nd, something repeats.
constexpr std::size_t kGlance = 4 << 10;
constexpr std::size_t kRepeats = 2;
constexpr double kSomeRepeats = 31.0 / 32;
// How much smaller zstd has to make a chunk than a codec of floats, which is many times as fast.
constexpr double kWorthZstd = 0.95;
// Filters rank the same at the fastest level as at higher ones. It is also the level at which zstd
// takes the place of a codec of floats.
constexpr int kProbeLevel = 1;

// Stretches at equal distances, the first at the chunk's beginning and the last near its end: a
// chunk may span several tensors. The distance is a multiple of 8, so that each stretch begins with
// a whole element. A chunk that is no longer than the sample is taken whole, and not copied.
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
    // A plane of the whole chunk is longer than a codec's block, so each plane gets tables of its
    // own. In the sample all planes would share one table and look worse than they are; each is
    // therefore encoded alone. A chunk that is its own sample is encoded just as it will be.
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

std::size_t entropy_coded_size(ElementLayout layout, ByteSpan bytes) {
  thread_local std::vector<std::byte> coded;
  plane_entropy_encode(layout, bytes, coded);
  return coded.size();
}

// The part that LZ4 leaves of a glance. Codes for single bytes gain nothing from what repeats, such
// as runs of zeros or equal rows; zstd does. LZ4 at its fastest is the cheapest way to see it.
double left_by_repeats(ByteSpan raw) {
  std::array<std::byte, kPieces * kGlance> bytes;
  const ByteSpan seen = sample(raw, kGlance, bytes);
  return static_cast<double>(encoded_size(Codec::lz4, seen)) /
         static_cast<double>(std::max<std::size_t>(seen.size(), 1));
}

// Both ways over the whole chunk: what repeats may lie farther apart than any sample shows. Few
// chunks come here.
bool is_smaller_by_zstd(ElementLayout layout, Filter filter, ByteSpan raw) {
  thread_local Scratch scratch;
  const Scratch::Lease memory = scratch.take(raw.size());
  const MutableByteSpan filtered = memory.bytes().first(raw.size());
  apply_filter(filter, raw, filtered);
  return static_cast<double>(encoded_size(Codec::zstd, filtered)) <
         kWorthZstd * static_cast<double>(entropy_coded_size(layout, raw));
}

// The zeros of a difference repeat, and what is between them does not: codes for single bytes are
// mostly the shorter ones, and take a fraction of the time. In runs it is zstd's.
ChunkChoice choose_for_difference(ElementLayout layout, ByteSpan raw) {
  const FilterTrial trial = smallest_filter(Codec::zstd, layout, raw);
  std::array<std::byte, kSample> bytes;
  if (entropy_coded_size(layout, sample(raw, kPieceBytes, bytes)) <= trial.size)
    return {Codec::plane_entropy};
  return {Codec::zstd, trial.filter, kProbeLevel};
}

ChunkChoice choose_for_elements(Codec wanted, ElementLayout layout, ByteSpan raw) {
  const bool packable = layout.content == Content::floats && layout.element_bytes > 1;
  const bool codable = layout.content == Content::floats || layout.content == Content::integers;
  const double left = codable ? left_by_repeats(raw) : 0;
  if (left < kSomeRepeats) {
    const bool is_difference = codable && layout.is_difference && wanted == Codec::plane_entropy;
    if (is_difference && kRepeats * left < 1) return choose_for_difference(layout, raw);
    const Filter filter = filter_for(Codec::zstd, layout, raw);
    if (kRepeats * left < 1 || is_smaller_by_zstd(layout, filter, raw))
      return {Codec::zstd, filter, kProbeLevel};
  }
  // Ascending numbers, such as ids and offsets, are little more than their differences, which only
  // the filters of zstd take. The trial is expensive, but such tensors are rarely the bulk of a
  // checkpoint.
  if (layout.content == Content::integers && layout.element_bytes >= 4) {
    const FilterTrial trial = smallest_filter(Codec::zstd, layout, raw);
    std::array<std::byte, kSample> bytes;
    if (trial.size < entropy_coded_size(layout, sample(raw, kPieceBytes, bytes)))
      return {Codec::zstd, trial.filter, kProbeLevel};
  }
  return {wanted == Codec::packed_exponents && packable ? Codec::packed_exponents
                                                        : Codec::plane_entropy};
}

}  // namespace

ChunkChoice choose_coding(Codec wanted, int level, ElementLayout layout, ByteSpan raw) {
  if (wanted == Codec::none) return {};
  if (wanted == Codec::plane_entropy || wanted == Codec::packed_exponents)
    return choose_for_elements(wanted, layout, raw);
  return {wanted, filter_for(wanted, layout, raw), level};
}

}  // namespace thalia::codec
