// The kernels of step_delta with AVX-512, a group of one element from each lane at a time: elements
// as 32 words, states as two vectors of 16. A register has what all classes have of a magnitude, so
// tables are looked up by permutation. Elements of one byte are words whose lower byte is 0.
#ifdef __x86_64__
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "codec/cpu/intrinsics.h"
#include "codec/step/avx512_elements.h"
#include "codec/step/kernels.h"

namespace thalia::codec {
namespace {

using namespace step_avx512;

// One step of 16 states, after they gave up their words. The quotient is estimated by a product
// that is too small by 2^-21 of it at most, and not too large: it is right or one less, as it is
// below 2^17.
THALIA_AVX512 inline __m512i encoded(__m512i state, __m512i frequency, __m512i start) noexcept {
  const __m512 inverse = _mm512_div_ps(_mm512_set1_ps(1 - 0x1p-22F), _mm512_cvtepi32_ps(frequency));
  const __m512i quotient = _mm512_cvttps_epu32(_mm512_mul_ps(
      _mm512_cvt_roundepu32_ps(state, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC), inverse));
  const __m512i complement = _mm512_sub_epi32(all(kStepScale), frequency);
  const __m512i rest = _mm512_sub_epi32(state, _mm512_mullo_epi32(quotient, frequency));
  const __m512i next =
      _mm512_add_epi32(_mm512_add_epi32(_mm512_slli_epi32(quotient, kStepScaleBits), start), rest);
  return _mm512_mask_add_epi32(next, _mm512_cmpge_epi32_mask(rest, frequency), next, complement);
}

// From place n on, what turns a vector of words by n places.
constexpr auto kTurns = [] {
  std::array<std::uint16_t, 2 * kGroup> places{};
  for (std::size_t i = 0; i < places.size(); ++i)
    places[i] = static_cast<std::uint16_t>(i % kGroup);
  return places;
}();

// 32, 16 or 8 lanes.
template <std::size_t kBytes, std::size_t kLanes>
THALIA_AVX512 std::byte* encode_elements(const StepModel& model, const std::byte* base,
                                         const std::byte* next, std::size_t count,
                                         std::uint32_t* states, std::byte* words) noexcept {
  constexpr __mmask32 kLive = first_lanes(kLanes);
  const StepElements<kBytes> elements(model.kind, model.first_class);
  const StepTables& tables = model.tables;
  const __m512i low_words = _mm512_loadu_si512(kLowWords.data());
  const __m512i unchanged = _mm512_load_si512(tables.frequency[0]);
  __m512i lower = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(kLive), states);
  __m512i upper = kLanes > kHalf ? _mm512_loadu_si512(states + kHalf) : _mm512_setzero_si512();
  for (std::size_t i = count; i != 0;) {
    i -= kLanes;
    const __m512i old = elements.load(base + i * kBytes, kLive);
    const __m512i now = elements.load(next + i * kBytes, kLive);
    const __m512i classes = elements.classes(old);
    __m512i frequency = _mm512_permutexvar_epi16(classes, unchanged);
    __m512i start = _mm512_setzero_si512();
    if (_mm512_cmpneq_epi16_mask(old, now) != 0) {
      const __m512i steps = elements.steps(old, now);
      const __m512i distance = _mm512_abs_epi16(steps);
      const auto look_up = [&](std::size_t k) THALIA_AVX512 {
        const __mmask32 is_more = _mm512_cmpge_epu16_mask(distance, words_of(kStepLeast[k]));
        frequency = _mm512_mask_permutexvar_epi16(frequency, is_more, classes,
                                                  _mm512_load_si512(tables.frequency[k]));
        start = _mm512_mask_permutexvar_epi16(start, is_more, classes,
                                              _mm512_load_si512(tables.start[k]));
        return is_more;
      };
      __mmask32 is_more = 0;
#pragma GCC unroll 9
      for (std::size_t k = 1; k < kStepMagnitudes; ++k) is_more = look_up(k);
      // What is left of `is_more` is the escapes, which have no second half.
      const __mmask32 is_down = _mm512_movepi16_mask(steps) & ~is_more;
      start = _mm512_mask_add_epi16(start, is_down, start, frequency);
    }
    const __m512i lower_frequency = lower_half(frequency);
    const __m512i upper_frequency = upper_half(frequency);
    // The bound is 2^32 where the frequency is all: one less is compared.
    const __mmask16 lower_full = _mm512_cmpgt_epu32_mask(
        lower, _mm512_sub_epi32(_mm512_slli_epi32(lower_frequency, 17), all(1)));
    const __mmask16 upper_full = _mm512_cmpgt_epu32_mask(
        upper, _mm512_sub_epi32(_mm512_slli_epi32(upper_frequency, 17), all(1)));
    const __mmask32 is_full = kLive & (__mmask32{lower_full} | __mmask32{upper_full} << kHalf);
    const auto given = static_cast<unsigned>(std::popcount(is_full));
    // Whether there are any is too hard to foresee for a branch. All of a vector is stored, with
    // the words at its end: a masked store takes much longer.
    const __m512i given_first =
        _mm512_maskz_compress_epi16(is_full, _mm512_permutex2var_epi16(lower, low_words, upper));
    const __m512i at_end = _mm512_loadu_si512(kTurns.data() + given);
    _mm512_storeu_si512(words - 2 * kGroup, _mm512_permutexvar_epi16(at_end, given_first));
    words -= 2 * given;
    lower = _mm512_mask_srli_epi32(lower, lower_full, lower, 16);
    upper = _mm512_mask_srli_epi32(upper, upper_full, upper, 16);
    lower = encoded(lower, lower_frequency, lower_half(start));
    if constexpr (kLanes > kHalf) upper = encoded(upper, upper_frequency, upper_half(start));
  }
  _mm512_mask_storeu_epi32(states, static_cast<__mmask16>(kLive), lower);
  if constexpr (kLanes > kHalf) _mm512_storeu_si512(states + kHalf, upper);
  return words;
}

// Reads extra bits, from the chunk's end down.
struct Bits {
  const std::byte* begin;
  const std::byte* end;
  std::uint64_t count;

  bool take(unsigned width, std::uint16_t& value) noexcept {
    const auto size = static_cast<std::uint64_t>(end - begin);
    if (count + width > 8 * size) return false;
    const std::uint64_t bytes = std::min<std::uint64_t>(8, size - count / 8);
    std::uint64_t eight = 0;
    if (bytes == 8) {
      std::memcpy(&eight, end - count / 8 - 8, 8);
      eight = __builtin_bswap64(eight);
    } else {
      for (std::uint64_t i = 0; i < bytes; ++i)
        eight |= std::to_integer<std::uint64_t>(*(end - count / 8 - 1 - i)) << (8 * i);
    }
    value = static_cast<std::uint16_t>(eight >> (count % 8) & ((1u << width) - 1));
    count += width;
    return true;
  }
};

// What a group of slots stands for.
struct Decoded {
  __m512i frequency;
  __m512i offset;  ///< of the slot in its symbol
  __m512i steps;
};

// A group in which something changed. False if there are not enough extra bits.
template <std::size_t kBytes>
THALIA_AVX512 inline bool decode_steps(const StepTables& tables, __m512i classes, __m512i slot,
                                       __mmask32 live, Bits& bits, Decoded& out) noexcept {
  __m512i start = _mm512_setzero_si512(), least = start, width = start;
  __mmask32 far = 0, escapes = 0;
  for (std::size_t k = 1; k < kStepMagnitudes; ++k) {
    const __m512i begin = _mm512_permutexvar_epi16(classes, _mm512_load_si512(tables.start[k]));
    const __mmask32 is_more = _mm512_mask_cmpge_epu16_mask(live, slot, begin);
    if (is_more == 0) break;
    start = _mm512_mask_mov_epi16(start, is_more, begin);
    out.frequency = _mm512_mask_permutexvar_epi16(out.frequency, is_more, classes,
                                                  _mm512_load_si512(tables.frequency[k]));
    least = _mm512_mask_mov_epi16(least, is_more, words_of(k == kStepEscape ? 0 : kStepLeast[k]));
    width = _mm512_mask_mov_epi16(width, is_more,
                                  words_of(k == kStepEscape ? 8 * kBytes : kStepExtraBits[k]));
    if (k == 4) far = is_more;
    if (k == kStepEscape) escapes = is_more;
  }
  out.offset = _mm512_sub_epi16(slot, start);
  const __mmask32 is_down = _mm512_cmpge_epu16_mask(out.offset, out.frequency) & ~escapes;
  out.offset = _mm512_mask_sub_epi16(out.offset, is_down, out.offset, out.frequency);
  if (far != 0) {
    alignas(64) std::uint16_t widths[kGroup], distances[kGroup];
    _mm512_store_si512(widths, width);
    _mm512_store_si512(distances, least);
    for (; far != 0; far &= far - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(far));
      std::uint16_t extra;
      if (!bits.take(widths[lane], extra)) return false;
      distances[lane] = static_cast<std::uint16_t>(distances[lane] + extra);
    }
    least = _mm512_load_si512(distances);
  }
  out.steps = _mm512_mask_sub_epi16(least, is_down, _mm512_setzero_si512(), least);
  return true;
}

template <std::size_t kBytes, std::size_t kLanes>
THALIA_AVX512 std::size_t decode_elements(StepRun& run, const std::byte* base, std::byte* out,
                                          std::size_t count) noexcept {
  constexpr __mmask32 kLive = first_lanes(kLanes);
  const StepTables& tables = run.model.tables;
  const StepElements<kBytes> elements(run.model.kind, run.model.first_class);
  const __m512i low_words = _mm512_loadu_si512(kLowWords.data());
  const __m512i unchanged = _mm512_load_si512(tables.frequency[0]);
  const bool is_in_place = base == out;
  __m512i lower = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(kLive), run.states);
  __m512i upper = kLanes > kHalf ? _mm512_loadu_si512(run.states + kHalf) : _mm512_setzero_si512();
  Bits bits{run.begin, run.end, run.bits};
  const std::byte* words = run.words;
  std::size_t i = 0;
  for (; i < count; i += kLanes) {
    const __m512i old = elements.load(base + i * kBytes, kLive);
    const __m512i classes = elements.classes(old);
    const __m512i slot = _mm512_and_si512(_mm512_permutex2var_epi16(lower, low_words, upper),
                                          words_of(kStepScale - 1));
    Decoded decoded{_mm512_permutexvar_epi16(classes, unchanged), slot, _mm512_setzero_si512()};
    Bits bits_after = bits;
    const __mmask32 changed = _mm512_mask_cmpge_epu16_mask(kLive, slot, decoded.frequency);
    if (changed != 0 && !decode_steps<kBytes>(tables, classes, slot, kLive, bits_after, decoded))
      break;
    __m512i next_lower = _mm512_add_epi32(
        _mm512_mullo_epi32(lower_half(decoded.frequency), _mm512_srli_epi32(lower, kStepScaleBits)),
        lower_half(decoded.offset));
    __m512i next_upper = upper;
    __mmask32 wanting =
        _mm512_mask_cmplt_epu32_mask(static_cast<__mmask16>(kLive), next_lower, all(kStepLow));
    if constexpr (kLanes > kHalf) {
      next_upper = _mm512_add_epi32(_mm512_mullo_epi32(upper_half(decoded.frequency),
                                                       _mm512_srli_epi32(upper, kStepScaleBits)),
                                    upper_half(decoded.offset));
      wanting |= __mmask32{_mm512_cmplt_epu32_mask(next_upper, all(kStepLow))} << kHalf;
    }
    if (wanting != 0) {
      const auto taken = static_cast<std::size_t>(std::popcount(wanting));
      const auto left = static_cast<std::size_t>(run.end - words) / 2;
      if (taken > left) break;
      const __m512i expanded = _mm512_maskz_expand_epi16(
          wanting, left >= kGroup ? _mm512_loadu_si512(words)
                                  : _mm512_maskz_loadu_epi16(first_lanes(left), words));
      const auto lower_wanting = static_cast<__mmask16>(wanting);
      const auto upper_wanting = static_cast<__mmask16>(wanting >> kHalf);
      next_lower = _mm512_mask_or_epi32(next_lower, lower_wanting,
                                        _mm512_slli_epi32(next_lower, 16), lower_half(expanded));
      next_upper = _mm512_mask_or_epi32(next_upper, upper_wanting,
                                        _mm512_slli_epi32(next_upper, 16), upper_half(expanded));
      words += 2 * taken;
    }
    lower = next_lower;
    upper = next_upper;
    bits = bits_after;
    if (changed != 0) {
      elements.store(out + i * kBytes, kLive, elements.moved(old, decoded.steps));
    } else if (!is_in_place) {
      elements.store(out + i * kBytes, kLive, old);
    }
  }
  run.words = words;
  run.bits = bits.count;
  _mm512_mask_storeu_epi32(run.states, static_cast<__mmask16>(kLive), lower);
  if constexpr (kLanes > kHalf) _mm512_storeu_si512(run.states + kHalf, upper);
  return i;
}

std::byte* encode(const StepModel& model, const std::byte* base, const std::byte* next,
                  std::size_t count, std::uint32_t* states, std::byte* words) noexcept {
  const bool bytes = model.kind.bytes == 1;
  const auto with = [&](auto kernel) { return kernel(model, base, next, count, states, words); };
  switch (model.lanes) {
    case 32:
      return with(bytes ? encode_elements<1, 32> : encode_elements<2, 32>);
    case 16:
      return with(bytes ? encode_elements<1, 16> : encode_elements<2, 16>);
    case 8:
      return with(bytes ? encode_elements<1, 8> : encode_elements<2, 8>);
    default:
      return with(step_encode_some);
  }
}

std::size_t decode(StepRun& run, const std::byte* base, std::byte* out,
                   std::size_t count) noexcept {
  const bool bytes = run.model.kind.bytes == 1;
  const auto with = [&](auto kernel) { return kernel(run, base, out, count); };
  switch (run.model.lanes) {
    case 32:
      return with(bytes ? decode_elements<1, 32> : decode_elements<2, 32>);
    case 16:
      return with(bytes ? decode_elements<1, 16> : decode_elements<2, 16>);
    case 8:
      return with(bytes ? decode_elements<1, 8> : decode_elements<2, 8>);
    default:
      return 0;
  }
}

}  // namespace

const StepKernels kAvx512Step = {
    .count = step_avx512::count, .extras = step_avx512::extras, .encode = encode, .decode = decode};

}  // namespace thalia::codec
#endif
