// The conversions with AVX-512F, sixteen numbers at a time; f16c.cc explains the steps that both
// share. What is left after the last whole vector is converted one number at a time.
#ifdef __x86_64__
#if defined(__GNUC__) && !defined(__clang__)
// gcc bug 105593: its own header's undefined vectors are warned of.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include <algorithm>

#include "codec/float/portable.h"
#include "codec/float/sums.h"

// On functions and not on the file, as in f16c.cc.
#define THALIA_TARGET __attribute__((target("avx512f,avx2,f16c")))

namespace thalia::codec {
namespace {

constexpr std::size_t kLanes = 16;

THALIA_TARGET inline __m512i load_words(const std::byte* at) noexcept {
  return _mm512_loadu_si512(at);
}
THALIA_TARGET inline __m256i load_halves(const std::byte* at) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
THALIA_TARGET inline void store_words(std::byte* at, __m512i words) noexcept {
  _mm512_storeu_si512(at, words);
}
THALIA_TARGET inline void store_halves(std::byte* at, __m256i halves) noexcept {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), halves);
}

THALIA_TARGET inline __mmask16 nan_lanes(__m512i bits) noexcept {
  const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
  return _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7F800000));
}

// With integers, as in f16c.cc: VCVTNEPS2BF16 flushes subnormals.
THALIA_TARGET inline __m256i to_bf16(__m512i bits) noexcept {
  const __m512i high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i bump = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bump), 16);
  const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, nan_lanes(bits), quiet));
}

// Eight f64 to f32, rounded to odd as in f16c.cc.
THALIA_TARGET inline __m256 to_odd_f32(__m512i bits) noexcept {
  const __m512i tail = _mm512_set1_epi64((1 << 29) - 1);
  const __m512i last = _mm512_set1_epi64(1 << 29);
  const __mmask8 is_cut = _mm512_test_epi64_mask(bits, tail);
  const __m512i cut = _mm512_andnot_si512(tail, bits);
  return _mm512_cvtpd_ps(_mm512_castsi512_pd(_mm512_mask_or_epi64(cut, is_cut, cut, last)));
}

THALIA_TARGET inline __m512i odd_f32(__m512i low, __m512i high) noexcept {
  const __m256i second = _mm256_castps_si256(to_odd_f32(high));
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_castps_si256(to_odd_f32(low))), second,
                            1);
}

// Whether some number would be subnormal as an f32. One is subtracted so that zero wraps to the
// greatest number and does not count.
THALIA_TARGET inline bool any_tiny(__m512i bits) noexcept {
  const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi64(0x7FFFFFFFFFFFFFFF));
  const __m512i before = _mm512_sub_epi64(magnitude, _mm512_set1_epi64(1));
  return _mm512_cmplt_epu64_mask(before, _mm512_set1_epi64((std::int64_t{897} << 52) - 1)) != 0;
}

THALIA_TARGET void f32_to_f16(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m512 numbers = _mm512_castsi512_ps(load_words(from + 4 * i));
    store_halves(to + 2 * i, _mm512_cvtps_ph(numbers, _MM_FROUND_TO_NEAREST_INT));
  }
  kEachF32ToF16(from + 4 * i, to + 2 * i, count - i);
}

THALIA_TARGET void f32_to_bf16(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    store_halves(to + 2 * i, to_bf16(load_words(from + 4 * i)));
  kEachF32ToBF16(from + 4 * i, to + 2 * i, count - i);
}

THALIA_TARGET void f32_to_f64(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + kLanes / 2 <= count; i += kLanes / 2) {
    const __m256 numbers = _mm256_castsi256_ps(load_halves(from + 4 * i));
    store_words(to + 8 * i, _mm512_castpd_si512(_mm512_cvtps_pd(numbers)));
  }
  kEachF32ToF64(from + 4 * i, to + 8 * i, count - i);
}

THALIA_TARGET void f64_to_f16(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m512i odd = odd_f32(load_words(from + 8 * i), load_words(from + 8 * i + 64));
    store_halves(to + 2 * i, _mm512_cvtps_ph(_mm512_castsi512_ps(odd), _MM_FROUND_TO_NEAREST_INT));
  }
  kEachF64ToF16(from + 8 * i, to + 2 * i, count - i);
}

THALIA_TARGET void f64_to_bf16(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m512i low = load_words(from + 8 * i);
    const __m512i high = load_words(from + 8 * i + 64);
    if (any_tiny(low) || any_tiny(high)) {
      kEachF64ToBF16(from + 8 * i, to + 2 * i, kLanes);
    } else {
      store_halves(to + 2 * i, to_bf16(odd_f32(low, high)));
    }
  }
  kEachF64ToBF16(from + 8 * i, to + 2 * i, count - i);
}

THALIA_TARGET void f64_to_f32(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + kLanes / 2 <= count; i += kLanes / 2) {
    const __m512d numbers = _mm512_castsi512_pd(load_words(from + 8 * i));
    store_halves(to + 4 * i, _mm256_castps_si256(_mm512_cvtpd_ps(numbers)));
  }
  kEachF64ToF32(from + 8 * i, to + 4 * i, count - i);
}

// Elements of `width` bytes before the first that begins a cache line. Widening stores a whole line
// at a time, and a store that crosses two lines costs as much as two.
std::size_t elements_before_line(const std::byte* to, std::size_t width, std::size_t count) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(to) % 64;
  return past == 0 || past % width != 0 ? 0 : std::min(count, (64 - past) / width);
}

THALIA_TARGET void f16_to_f32(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = elements_before_line(to, 4, count);
  kEachF16ToF32(from, to, i);
  for (; i + kLanes <= count; i += kLanes)
    store_words(to + 4 * i, _mm512_castps_si512(_mm512_cvtph_ps(load_halves(from + 2 * i))));
  kEachF16ToF32(from + 2 * i, to + 4 * i, count - i);
}

THALIA_TARGET void bf16_to_f32(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  const __m512i quiet = _mm512_set1_epi32(0x400000);
  std::size_t i = elements_before_line(to, 4, count);
  kEachBF16ToF32(from, to, i);
  for (; i + kLanes <= count; i += kLanes) {
    const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(load_halves(from + 2 * i)), 16);
    store_words(to + 4 * i, _mm512_mask_or_epi32(bits, nan_lanes(bits), bits, quiet));
  }
  kEachBF16ToF32(from + 2 * i, to + 4 * i, count - i);
}

THALIA_TARGET void range_of(const double* numbers, std::size_t count, double limit,
                            NumberRange& out) noexcept {
  range_in_lanes(numbers, count, limit, out);
}

THALIA_TARGET double squares_of(const double* numbers, std::size_t count, double mean) noexcept {
  return squares_in_lanes(numbers, count, mean);
}

}  // namespace

const FloatKernels kAvx512Kernels = {
    .f32_to_f16 = f32_to_f16,
    .f32_to_bf16 = f32_to_bf16,
    .f32_to_f64 = f32_to_f64,
    .f64_to_f16 = f64_to_f16,
    .f64_to_bf16 = f64_to_bf16,
    .f64_to_f32 = f64_to_f32,
    .f16_to_f32 = f16_to_f32,
    .bf16_to_f32 = bf16_to_f32,
    .range = range_of,
    .squares = squares_of,
};

}  // namespace thalia::codec

#undef THALIA_TARGET
#endif
