// The conversions with AVX2 and F16C, eight numbers at a time. The rule for each step is that of
// bits.h, bit by bit: rounding to nearest, ties to even, once; subnormals kept; a NaN made quiet,
// its sign and the top of its payload kept. The processor's own conversions are used if they do
// just that, provided that MXCSR is in its standard state (environment.h).
#ifdef __x86_64__
#include <immintrin.h>

#include "codec/float/portable.h"
#include "codec/float/sums.h"

// On functions and not on the whole file: inline functions of headers would else be compiled for
// AVX2 here, and the linker could keep those for processors that have none.
#define THALIA_TARGET __attribute__((target("avx2,f16c")))

namespace thalia::codec {
namespace {

constexpr std::size_t kLanes = 8;

THALIA_TARGET inline __m256i load_words(const std::byte* at) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
THALIA_TARGET inline __m128i load_halves(const std::byte* at) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
THALIA_TARGET inline void store_words(std::byte* at, __m256i words) noexcept {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), words);
}
THALIA_TARGET inline void store_halves(std::byte* at, __m128i halves) noexcept {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at), halves);
}

// Rounds with integers, because the processor's instruction flushes subnormals. Adding 0x7FFF, and
// one more where the last kept bit is odd, carries exactly where rounding to even goes up; a carry
// out of the mantissa raises the exponent, up to infinity. A NaN could become another number that
// way, so it is cut and made quiet instead.
THALIA_TARGET inline __m128i to_bf16(__m256i bits) noexcept {
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i bump = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bump), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
  const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7F800000));
  const __m256i wide = _mm256_blendv_epi8(rounded, quiet, is_nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
}

// Rounds to odd: cuts an f64 to the 24 bits of an f32, and sets the last of them where anything was
// cut off. The processor then converts without rounding, and rounding the result to at most 22 bits
// gives what rounding the f64 once would. Rounding to nearest twice would not.
THALIA_TARGET inline __m128 to_odd_f32(__m256i bits) noexcept {
  const __m256i tail = _mm256_set1_epi64x((1 << 29) - 1);
  const __m256i is_exact = _mm256_cmpeq_epi64(_mm256_and_si256(bits, tail), _mm256_setzero_si256());
  const __m256i sticky = _mm256_andnot_si256(is_exact, _mm256_set1_epi64x(1 << 29));
  const __m256i odd = _mm256_or_si256(_mm256_andnot_si256(tail, bits), sticky);
  return _mm256_cvtpd_ps(_mm256_castsi256_pd(odd));
}

THALIA_TARGET inline __m256 odd_f32(__m256i low, __m256i high) noexcept {
  return _mm256_set_m128(to_odd_f32(high), to_odd_f32(low));
}

// Whether some number would be subnormal as an f32: with less than 24 bits, the processor would
// round it to nearest. It matters for bf16, which reaches as far down; what becomes an f16 is zero
// then. 897 is the exponent field of 2^-126, the least normal f32.
THALIA_TARGET inline bool any_tiny(__m256i bits) noexcept {
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi64x(0x7FFFFFFFFFFFFFFF));
  const __m256i is_positive = _mm256_cmpgt_epi64(magnitude, _mm256_setzero_si256());
  const __m256i is_small =
      _mm256_cmpgt_epi64(_mm256_set1_epi64x(std::int64_t{897} << 52), magnitude);
  return _mm256_testz_si256(is_positive, is_small) == 0;
}

THALIA_TARGET void f32_to_f16(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m256 numbers = _mm256_castsi256_ps(load_words(from + 4 * i));
    store_halves(to + 2 * i, _mm256_cvtps_ph(numbers, _MM_FROUND_TO_NEAREST_INT));
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
    const __m128 numbers = _mm_castsi128_ps(load_halves(from + 4 * i));
    store_words(to + 8 * i, _mm256_castpd_si256(_mm256_cvtps_pd(numbers)));
  }
  kEachF32ToF64(from + 4 * i, to + 8 * i, count - i);
}

THALIA_TARGET void f64_to_f16(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m256 odd = odd_f32(load_words(from + 8 * i), load_words(from + 8 * i + 32));
    store_halves(to + 2 * i, _mm256_cvtps_ph(odd, _MM_FROUND_TO_NEAREST_INT));
  }
  kEachF64ToF16(from + 8 * i, to + 2 * i, count - i);
}

THALIA_TARGET void f64_to_bf16(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m256i low = load_words(from + 8 * i);
    const __m256i high = load_words(from + 8 * i + 32);
    if (any_tiny(low) || any_tiny(high)) {
      kEachF64ToBF16(from + 8 * i, to + 2 * i, kLanes);
    } else {
      store_halves(to + 2 * i, to_bf16(_mm256_castps_si256(odd_f32(low, high))));
    }
  }
  kEachF64ToBF16(from + 8 * i, to + 2 * i, count - i);
}

THALIA_TARGET void f64_to_f32(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + kLanes / 2 <= count; i += kLanes / 2) {
    const __m256d numbers = _mm256_castsi256_pd(load_words(from + 8 * i));
    store_halves(to + 4 * i, _mm_castps_si128(_mm256_cvtpd_ps(numbers)));
  }
  kEachF64ToF32(from + 8 * i, to + 4 * i, count - i);
}

THALIA_TARGET void f16_to_f32(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    store_words(to + 4 * i, _mm256_castps_si256(_mm256_cvtph_ps(load_halves(from + 2 * i))));
  kEachF16ToF32(from + 2 * i, to + 4 * i, count - i);
}

THALIA_TARGET void bf16_to_f32(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_halves(from + 2 * i)), 16);
    const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
    const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7F800000));
    const __m256i quiet = _mm256_and_si256(is_nan, _mm256_set1_epi32(0x400000));
    store_words(to + 4 * i, _mm256_or_si256(bits, quiet));
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

const FloatKernels kF16cKernels = {
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
