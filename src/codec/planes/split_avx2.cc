// 32 words at a time with AVX2. The lower halves of the vectors hold the first 16 words, the upper
// halves the others: so packing and unpacking, which work within halves, keep the words in order.
#ifdef __x86_64__
#include "codec/cpu/intrinsics.h"
#include "codec/planes/split_kernels.h"

namespace thalia::codec {
namespace {

constexpr std::size_t kLanes = 32;

template <std::size_t kWidth, bool kIsRight>
THALIA_AVX2 inline __m256i rotate(__m256i words) noexcept {
  constexpr int kLeft = kIsRight ? 8 * static_cast<int>(kWidth) - 1 : 1;
  constexpr int kRight = 8 * static_cast<int>(kWidth) - kLeft;
  if constexpr (kWidth == 2) {
    return _mm256_or_si256(_mm256_slli_epi16(words, kLeft), _mm256_srli_epi16(words, kRight));
  } else if constexpr (kWidth == 4) {
    return _mm256_or_si256(_mm256_slli_epi32(words, kLeft), _mm256_srli_epi32(words, kRight));
  } else {
    return _mm256_or_si256(_mm256_slli_epi64(words, kLeft), _mm256_srli_epi64(words, kRight));
  }
}

// Deals the bytes of all vectors like cards: those at even places to the first half of the vectors,
// those at odd places to the second, and each half again. After log2(width) rounds each vector
// holds one plane.
template <std::size_t kCount>
THALIA_AVX2 inline void deal(__m256i* vectors) noexcept {
  if constexpr (kCount > 1) {
    const __m256i low_bytes = _mm256_set1_epi16(0xff);
    __m256i dealt[kCount];
    for (std::size_t i = 0; i < kCount / 2; ++i) {
      const __m256i a = vectors[2 * i], b = vectors[2 * i + 1];
      dealt[i] =
          _mm256_packus_epi16(_mm256_and_si256(a, low_bytes), _mm256_and_si256(b, low_bytes));
      dealt[kCount / 2 + i] = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
    }
    deal<kCount / 2>(dealt);
    deal<kCount / 2>(dealt + kCount / 2);
    // The halves hold the even and the odd planes; they take turns in the result.
    for (std::size_t i = 0; i < kCount / 2; ++i) {
      vectors[2 * i] = dealt[i];
      vectors[2 * i + 1] = dealt[kCount / 2 + i];
    }
  }
}

// The inverse of deal().
template <std::size_t kCount>
THALIA_AVX2 inline void gather(__m256i* vectors) noexcept {
  if constexpr (kCount > 1) {
    __m256i dealt[kCount];
    for (std::size_t i = 0; i < kCount / 2; ++i) {
      dealt[i] = vectors[2 * i];
      dealt[kCount / 2 + i] = vectors[2 * i + 1];
    }
    gather<kCount / 2>(dealt);
    gather<kCount / 2>(dealt + kCount / 2);
    for (std::size_t i = 0; i < kCount / 2; ++i) {
      vectors[2 * i] = _mm256_unpacklo_epi8(dealt[i], dealt[kCount / 2 + i]);
      vectors[2 * i + 1] = _mm256_unpackhi_epi8(dealt[i], dealt[kCount / 2 + i]);
    }
  }
}

THALIA_AVX2 inline __m128i load_half(const std::byte* at) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
THALIA_AVX2 inline void store_half(std::byte* at, __m128i half) noexcept {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at), half);
}

template <std::size_t kWidth, bool kIsRotated>
THALIA_AVX2 void split(const std::byte* words, std::size_t count,
                       std::byte* const* planes) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const std::byte* const from = words + i * kWidth;
    __m256i vectors[kWidth];
    for (std::size_t k = 0; k < kWidth; ++k) {
      vectors[k] = _mm256_set_m128i(load_half(from + 16 * (kWidth + k)), load_half(from + 16 * k));
      if constexpr (kIsRotated) vectors[k] = rotate<kWidth, false>(vectors[k]);
    }
    deal<kWidth>(vectors);
    for (std::size_t k = 0; k < kWidth; ++k)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(planes[k] + i), vectors[k]);
  }
  split_rest<kWidth, kIsRotated>(words, i, count, planes);
}

template <std::size_t kWidth, bool kIsRotated>
THALIA_AVX2 void join(const std::byte* const* planes, std::size_t count,
                      std::byte* words) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    std::byte* const to = words + i * kWidth;
    __m256i vectors[kWidth];
    for (std::size_t k = 0; k < kWidth; ++k)
      vectors[k] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(planes[k] + i));
    gather<kWidth>(vectors);
    for (std::size_t k = 0; k < kWidth; ++k) {
      if constexpr (kIsRotated) vectors[k] = rotate<kWidth, true>(vectors[k]);
      store_half(to + 16 * k, _mm256_castsi256_si128(vectors[k]));
      store_half(to + 16 * (kWidth + k), _mm256_extracti128_si256(vectors[k], 1));
    }
  }
  join_rest<kWidth, kIsRotated>(planes, i, count, words);
}

}  // namespace

const PlaneKernels kAvx2Planes = {
    .plain = {{split<2, false>, join<2, false>},
              {split<4, false>, join<4, false>},
              {split<8, false>, join<8, false>}},
    .rotated = {{split<2, true>, join<2, true>},
                {split<4, true>, join<4, true>},
                {split<8, true>, join<8, true>}},
};

}  // namespace thalia::codec
#endif
