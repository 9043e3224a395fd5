// Frequencies are chosen with integers alone, and ties go to the smaller byte: equal planes are
// coded as equal bytes on every machine. Floating point numbers only decide whether coding pays.
// A byte that occurs has a frequency of at least 1, or it could not be coded, and of at most 4095:
// 4096 does not fit the 12 bits that the tables have for it.
#include "codec/rans/code.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

namespace thalia::codec {
namespace {

// The symbol whose frequency is cheapest to lower (`takes`) or best to raise, by one. What it costs
// or saves is in proportion to count / frequency, taken in the middle between the old and the new
// frequency: hence 2 × frequency ± 1. Fractions are compared by products, without rounding. A
// frequency of 1 is not lowered.
std::size_t next_to_change(const ByteCounts& counts, const RansFrequencies& frequencies,
                           bool takes) {
  std::size_t best = counts.size();
  std::uint64_t best_count = 0, best_frequency = 1;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0 || (takes && frequencies[i] == 1)) continue;
    const std::uint64_t count = counts[i];
    const std::uint64_t frequency = 2u * frequencies[i] + (takes ? -1 : 1);
    const bool is_better = takes ? count * best_frequency < best_count * frequency
                                 : count * best_frequency > best_count * frequency;
    if (best != counts.size() && !is_better) continue;
    best = i;
    best_count = count;
    best_frequency = frequency;
  }
  return best;
}

}  // namespace

ByteCounts estimated_counts(ByteSpan plane, const RansKernels& kernels) {
  // An eighth of every part of the plane, as a chunk may span tensors. Short planes are counted
  // whole.
  constexpr std::size_t kRun = 256, kStep = 8 * kRun, kShortest = 32 * kStep;
  if (plane.size() < kShortest) return count_bytes(plane);
  ByteCounts counts = count_bytes(plane, kRun, kStep);
  ByteSet known;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    known.has[i] = counts[i] != 0 ? 0xff : 0;
    counts[i] *= kStep / kRun;
  }
  // A byte that the sample has missed would get frequency 0 and could not be coded. Such bytes are
  // few, and looking for them costs less than counting them all.
  kernels.count_others(known, plane.data(), plane.size(), counts.data());
  return counts;
}

RansFrequencies rans_frequencies(const ByteCounts& counts) {
  const std::uint64_t total = sum_of(counts);
  RansFrequencies out{};
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const std::uint64_t nearest = (counts[i] * std::uint64_t{kRansScale} + total / 2) / total;
    out[i] = static_cast<std::uint16_t>(std::clamp<std::uint64_t>(nearest, 1, kRansScale - 1));
    sum += out[i];
  }
  for (; sum > kRansScale; --sum) --out[next_to_change(counts, out, true)];
  for (; sum < kRansScale; ++sum) ++out[next_to_change(counts, out, false)];
  return out;
}

double coded_bits(const ByteCounts& counts, const RansFrequencies& frequencies) {
  double bits = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] != 0) bits += counts[i] * (kRansBits - std::log2(double{1} * frequencies[i]));
  return bits;
}

void make_table(const RansFrequencies& frequencies, RansEncodeTable& table) {
  std::uint32_t start = 0;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const std::uint32_t frequency = frequencies[i];
    table.reciprocal[i] = table.step[i] = 0;
    if (frequency == 0) continue;
    const std::uint32_t complement = kRansScale - frequency;
    if (frequency == 1) {
      // With this reciprocal the quotient is x - 1 and not x; the addend has one `complement` more.
      table.reciprocal[i] = ~std::uint32_t{0};
      table.step[i] = complement | (start + complement) << 12;
    } else {
      const auto shift = static_cast<std::uint32_t>(std::bit_width(frequency - 1));
      const std::uint64_t power = std::uint64_t{1} << (31 + shift);
      table.reciprocal[i] = static_cast<std::uint32_t>((power + frequency - 1) / frequency);
      table.step[i] = complement | start << 12 | (shift - 1) << 25;
    }
    start += frequency;
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < frequencies.size() && count <= kRansCompact; ++i) {
    if (frequencies[i] == 0) continue;
    if (count < kRansCompact) {
      table.number[i] = static_cast<std::uint8_t>(count);
      for (unsigned k = 0; k < 4; ++k) {
        table.compact[k][count] = static_cast<std::uint8_t>(table.reciprocal[i] >> (8 * k));
        table.compact[4 + k][count] = static_cast<std::uint8_t>(table.step[i] >> (8 * k));
      }
    }
    ++count;
  }
  table.is_compact = count <= kRansCompact;
}

namespace {

// False if there are too many byte values.
bool make_compact(const RansFrequencies& frequencies, RansDecodeTable& table) {
  std::memset(table.begins, 0, sizeof(table.begins));
  std::uint32_t start = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    if (frequencies[i] == 0) continue;
    if (count == kRansCompact) return false;
    table.frequency[count] = frequencies[i];
    table.start[count] = static_cast<std::uint16_t>(start);
    table.symbol[count] = static_cast<std::uint8_t>(i);
    table.begins[start / 16] |= static_cast<std::uint16_t>(1u << start % 16);
    start += frequencies[i];
    ++count;
  }
  int before = -1;
  for (std::size_t i = 0; i < std::size(table.begins); ++i) {
    table.before[i] = static_cast<std::uint8_t>(before);
    before += std::popcount(table.begins[i]);
  }
  return true;
}

}  // namespace

void make_table(const RansFrequencies& frequencies, RansDecodeTable& table) {
  std::uint32_t* at = table.entry;
  for (std::uint32_t i = 0; i < frequencies.size(); ++i)
    for (std::uint32_t k = 0; k < frequencies[i]; ++k)
      // The frequencies sum to kRansScale, which the caller has made sure of: the table is filled
      // exactly.
      *at++ = i | std::uint32_t{frequencies[i]} << 8 | k << 20;
  table.is_compact = make_compact(frequencies, table);
}

#ifdef __x86_64__
const RansKernels& rans_kernels(VectorSet set) noexcept {
  return set == VectorSet::avx512 ? kAvx512Rans
         : set == VectorSet::avx2 ? kAvx2Rans
                                  : kPortableRans;
}
#else
const RansKernels& rans_kernels(VectorSet) noexcept {
  return kPortableRans;
}
#endif

}  // namespace thalia::codec
