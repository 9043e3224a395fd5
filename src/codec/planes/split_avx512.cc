// 64 words at a time with AVX-512 VBMI: the bytes of a vector are put in order of their planes,
// then the vectors are transposed.
#ifdef __x86_64__
#include "codec/cpu/intrinsics.h"
#include "codec/planes/split_kernels.h"

namespace thalia::codec {
namespace {

constexpr std::size_t kLanes = 64;

template <std::size_t kWidth, bool kIsRight>
THALIA_AVX512 inline __m512i rotate(__m512i words) noexcept {
  if constexpr (kWidth == 2) {
    return kIsRight ? _mm512_shrdi_epi16(words, words, 1) : _mm512_shldi_epi16(words, words, 1);
  } else if constexpr (kWidth == 4) {
    return kIsRight ? _mm512_ror_epi32(words, 1) : _mm512_rol_epi32(words, 1);
  } else {
    return kIsRight ? _mm512_ror_epi64(words, 1) : _mm512_rol_epi64(words, 1);
  }
}

// For each byte of a vector in the order of planes, where it is in the order of words, and the
// other way round.
struct Places {
  alignas(64) std::uint8_t of_planes[64];
  alignas(64) std::uint8_t of_words[64];
};
template <std::size_t kWidth>
constexpr Places places() {
  Places out = {};
  for (std::size_t plane = 0; plane < kWidth; ++plane) {
    for (std::size_t word = 0; word < 64 / kWidth; ++word) {
      const std::size_t in_planes = plane * (64 / kWidth) + word, in_words = word * kWidth + plane;
      out.of_planes[in_planes] = static_cast<std::uint8_t>(in_words);
      out.of_words[in_words] = static_cast<std::uint8_t>(in_planes);
    }
  }
  return out;
}
template <std::size_t kWidth>
constexpr Places kPlaces = places<kWidth>();

// Four vectors that lie `kStep` apart are a matrix of four quarters each; it is transposed.
template <std::size_t kStep>
THALIA_AVX512 inline void transpose_quarters(__m512i* v) noexcept {
  const __m512i a = _mm512_shuffle_i64x2(v[0], v[kStep], 0x44);
  const __m512i b = _mm512_shuffle_i64x2(v[0], v[kStep], 0xEE);
  const __m512i c = _mm512_shuffle_i64x2(v[2 * kStep], v[3 * kStep], 0x44);
  const __m512i d = _mm512_shuffle_i64x2(v[2 * kStep], v[3 * kStep], 0xEE);
  v[0] = _mm512_shuffle_i64x2(a, c, 0x88);
  v[kStep] = _mm512_shuffle_i64x2(a, c, 0xDD);
  v[2 * kStep] = _mm512_shuffle_i64x2(b, d, 0x88);
  v[3 * kStep] = _mm512_shuffle_i64x2(b, d, 0xDD);
}

THALIA_AVX512 inline void exchange_eighths(__m512i& a, __m512i& b) noexcept {
  const __m512i low = _mm512_unpacklo_epi64(a, b);
  b = _mm512_unpackhi_epi64(a, b);
  a = low;
}

// Each vector is cut into as many parts as there are vectors; part j of vector i changes places
// with part i of vector j. The function is its own inverse.
template <std::size_t kWidth>
THALIA_AVX512 inline void transpose(__m512i* v) noexcept {
  if constexpr (kWidth == 2) {
    const __m512i low = _mm512_shuffle_i64x2(v[0], v[1], 0x44);
    v[1] = _mm512_shuffle_i64x2(v[0], v[1], 0xEE);
    v[0] = low;
  } else if constexpr (kWidth == 4) {
    transpose_quarters<1>(v);
  } else {
    for (std::size_t i = 0; i < 8; i += 2) exchange_eighths(v[i], v[i + 1]);
    transpose_quarters<2>(v);
    transpose_quarters<2>(v + 1);
  }
}

template <std::size_t kWidth, bool kIsRotated>
THALIA_AVX512 void split(const std::byte* words, std::size_t count,
                         std::byte* const* planes) noexcept {
  const __m512i order = _mm512_load_si512(kPlaces<kWidth>.of_planes);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    __m512i vectors[kWidth];
    for (std::size_t k = 0; k < kWidth; ++k) {
      vectors[k] = _mm512_loadu_si512(words + i * kWidth + 64 * k);
      if constexpr (kIsRotated) vectors[k] = rotate<kWidth, false>(vectors[k]);
      vectors[k] = _mm512_permutexvar_epi8(order, vectors[k]);
    }
    transpose<kWidth>(vectors);
    for (std::size_t k = 0; k < kWidth; ++k) _mm512_storeu_si512(planes[k] + i, vectors[k]);
  }
  split_rest<kWidth, kIsRotated>(words, i, count, planes);
}

template <std::size_t kWidth, bool kIsRotated>
THALIA_AVX512 void join(const std::byte* const* planes, std::size_t count,
                        std::byte* words) noexcept {
  const __m512i order = _mm512_load_si512(kPlaces<kWidth>.of_words);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    __m512i vectors[kWidth];
    for (std::size_t k = 0; k < kWidth; ++k) vectors[k] = _mm512_loadu_si512(planes[k] + i);
    transpose<kWidth>(vectors);
    for (std::size_t k = 0; k < kWidth; ++k) {
      vectors[k] = _mm512_permutexvar_epi8(order, vectors[k]);
      if constexpr (kIsRotated) vectors[k] = rotate<kWidth, true>(vectors[k]);
      _mm512_storeu_si512(words + i * kWidth + 64 * k, vectors[k]);
    }
  }
  join_rest<kWidth, kIsRotated>(planes, i, count, words);
}

}  // namespace

const PlaneKernels kAvx512Planes = {
    .plain = {{split<2, false>, join<2, false>},
              {split<4, false>, join<4, false>},
              {split<8, false>, join<8, false>}},
    .rotated = {{split<2, true>, join<2, true>},
                {split<4, true>, join<4, true>},
                {split<8, true>, join<8, true>}},
};

}  // namespace thalia::codec
#endif
