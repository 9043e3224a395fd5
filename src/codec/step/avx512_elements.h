// Elements of step_delta in vectors of AVX-512: 32 of them as words, one from each lane. Elements
// of one byte are words whose lower byte is 0.
#pragma once

#ifdef __x86_64__
#include <array>
#include <cstddef>
#include <cstdint>

#include "codec/cpu/intrinsics.h"
#include "codec/step/kernels.h"

namespace thalia::codec::step_avx512 {

constexpr std::size_t kGroup = kStepMostLanes;
constexpr std::size_t kHalf = kGroup / 2;

// Where the lower words of two vectors of states are.
constexpr auto kLowWords = [] {
  std::array<std::uint16_t, kGroup> places{};
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::uint16_t>(2 * i);
  return places;
}();

THALIA_AVX512 inline __m512i words_of(unsigned value) noexcept {
  return _mm512_set1_epi16(static_cast<short>(value));
}
THALIA_AVX512 inline __m512i all(std::uint32_t value) noexcept {
  return _mm512_set1_epi32(static_cast<int>(value));
}
THALIA_AVX512 inline __m512i lower_half(__m512i words) noexcept {
  return _mm512_cvtepu16_epi32(_mm512_castsi512_si256(words));
}
THALIA_AVX512 inline __m512i upper_half(__m512i words) noexcept {
  return _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(words, 1));
}
constexpr __mmask32 first_lanes(std::size_t count) noexcept {
  return count >= kGroup ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

// How elements of a kind are loaded and what they are.
template <std::size_t kBytes>
class StepElements {
 public:
  THALIA_AVX512 explicit StepElements(const StepKind& kind, unsigned first_class = 0) noexcept
      : sign_(words_of(kind.is_float ? 0x8000 : 0)),
        float_(words_of(!kind.is_float ? 0
                        : kBytes == 1  ? 0xff00
                                       : 0xffff)),
        first_class_(words_of(first_class)),
        exponent_mask_(words_of(kind.exponent_mask)),
        exponent_shift_(_mm_cvtsi32_si128(kind.exponent_shift + (kBytes == 1 ? 8 : 0))) {}

  THALIA_AVX512 static __m512i load(const std::byte* at, __mmask32 lanes) noexcept {
    if constexpr (kBytes == 1) {
      return _mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(lanes, at)), 8);
    } else {
      return _mm512_maskz_loadu_epi16(lanes, at);
    }
  }
  THALIA_AVX512 static void store(std::byte* at, __mmask32 lanes, __m512i codes) noexcept {
    // A store of all lanes is much faster without a mask.
    if constexpr (kBytes == 1) {
      const __m256i bytes = _mm512_cvtepi16_epi8(_mm512_srli_epi16(codes, 8));
      if (lanes == ~__mmask32{0}) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), bytes);
      } else {
        _mm256_mask_storeu_epi8(at, lanes, bytes);
      }
    } else if (lanes == ~__mmask32{0}) {
      _mm512_storeu_si512(at, codes);
    } else {
      _mm512_mask_storeu_epi16(at, lanes, codes);
    }
  }
  THALIA_AVX512 __m512i ordinal(__m512i codes) const noexcept {
    const __m512i negative = _mm512_and_si512(_mm512_srai_epi16(codes, 15), float_);
    return _mm512_xor_si512(codes, _mm512_or_si512(negative, sign_));
  }
  THALIA_AVX512 __m512i code_at(__m512i ordinal) const noexcept {
    // The sign bit of an ordinal is that of its code, turned over.
    const __m512i negative = _mm512_andnot_si512(_mm512_srai_epi16(ordinal, 15), float_);
    return _mm512_xor_si512(ordinal, _mm512_or_si512(negative, sign_));
  }
  // As words with their sign.
  THALIA_AVX512 __m512i steps(__m512i base, __m512i next) const noexcept {
    const __m512i steps = _mm512_sub_epi16(ordinal(next), ordinal(base));
    return kBytes == 1 ? _mm512_srai_epi16(steps, 8) : steps;
  }
  THALIA_AVX512 __m512i moved(__m512i base, __m512i steps) const noexcept {
    if constexpr (kBytes == 1) steps = _mm512_slli_epi16(steps, 8);
    return code_at(_mm512_add_epi16(ordinal(base), steps));
  }
  THALIA_AVX512 __m512i exponents(__m512i codes) const noexcept {
    return _mm512_and_si512(_mm512_srl_epi16(codes, exponent_shift_), exponent_mask_);
  }
  THALIA_AVX512 __m512i classes(__m512i codes) const noexcept {
    return _mm512_min_epu16(_mm512_subs_epu16(exponents(codes), first_class_),
                            words_of(kStepClasses - 1));
  }

 private:
  __m512i sign_, float_;  ///< the bits of codes of floats, else 0
  __m512i first_class_, exponent_mask_;
  __m128i exponent_shift_;
};

void count(const StepKind& kind, const std::byte* base, const std::byte* next, std::size_t count,
           StepExponentCounts& counts) noexcept;
void extras(const StepKind& kind, const std::byte* base, const std::byte* next, std::size_t count,
            StepBitSink& sink) noexcept;

}  // namespace thalia::codec::step_avx512
#endif
