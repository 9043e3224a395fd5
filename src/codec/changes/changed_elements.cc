// Runs of equal bytes are passed over a vector at a time, and within a vector that differs only the
// elements that do are looked at. AVX-512 packs them with one instruction an array; it is used on
// registers, as some processors take very long to pack right into memory. All sets give the same
// bytes up to the count; what lies beyond it is undefined.
#include "codec/changes/changed_elements.h"

#include <bit>
#include <cstring>

#include "codec/cpu/intrinsics.h"

namespace thalia::codec {
namespace {

static_assert(std::endian::native == std::endian::little);

// What the kernels have found, and where they are.
struct Cursor {
  const std::byte* base;
  const std::byte* now;
  std::uint16_t* positions;
  std::byte* values;
  std::size_t count = 0;
};

template <unsigned kWidth>
inline void take(Cursor& cursor, std::size_t element) noexcept {
  cursor.positions[cursor.count] = static_cast<std::uint16_t>(element);
  std::memcpy(cursor.values + cursor.count * kWidth, cursor.now + element * kWidth, kWidth);
  ++cursor.count;
}

// One by one, [begin, end) in bytes.
template <unsigned kWidth>
void find_each(Cursor& cursor, std::size_t begin, std::size_t end) noexcept {
  for (std::size_t at = begin; at < end; at += kWidth) {
    if (std::memcmp(cursor.base + at, cursor.now + at, kWidth) != 0)
      take<kWidth>(cursor, at / kWidth);
  }
}

inline std::uint64_t word(const std::byte* bytes) noexcept {
  std::uint64_t out;
  std::memcpy(&out, bytes, sizeof out);
  return out;
}

template <unsigned kWidth>
void find_portable(Cursor& cursor, std::size_t size) noexcept {
  constexpr std::size_t kStride = 32;
  std::size_t at = 0;
  for (; at + kStride <= size; at += kStride) {
    std::uint64_t differs = 0;
    for (std::size_t i = 0; i < kStride; i += 8)
      differs |= word(cursor.base + at + i) ^ word(cursor.now + at + i);
    if (differs != 0) find_each<kWidth>(cursor, at, at + kStride);
  }
  find_each<kWidth>(cursor, at, size);
}

#ifdef __x86_64__

// Bytes that differ are bits; the lowest one names an element, whose other bits then go.
template <unsigned kWidth>
THALIA_AVX2 void find_avx2(Cursor& cursor, std::size_t size) noexcept {
  constexpr std::size_t kVector = 32;
  constexpr std::uint32_t kElement = (1u << kWidth) - 1;
  std::size_t at = 0;
  for (; at + kVector <= size; at += kVector) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(cursor.base + at));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(cursor.now + at));
    auto differs = ~static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b)));
    while (differs != 0) {
      const unsigned element = static_cast<unsigned>(std::countr_zero(differs)) / kWidth;
      take<kWidth>(cursor, at / kWidth + element);
      differs &= ~(kElement << (element * kWidth));
    }
  }
  find_each<kWidth>(cursor, at, size);
}

constexpr std::size_t kVector512 = 64;

THALIA_AVX512 inline __m512i load512(const std::byte* bytes) noexcept {
  return _mm512_loadu_si512(bytes);
}

// The numbers first, first + 1, … of 32 elements.
THALIA_AVX512 inline __m512i numbers_from(std::size_t first) noexcept {
  alignas(64) static constexpr std::uint16_t kNumbers[32] = {
      0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
      16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  return _mm512_add_epi16(_mm512_load_si512(kNumbers),
                          _mm512_set1_epi16(static_cast<short>(first)));
}

THALIA_AVX512 inline void put_positions(Cursor& cursor, std::uint32_t mask, std::size_t first,
                                        std::size_t count) noexcept {
  _mm512_storeu_si512(cursor.positions + count,
                      _mm512_maskz_compress_epi16(mask, numbers_from(first)));
}

template <unsigned kWidth>
THALIA_AVX512 void find_avx512(Cursor& cursor, std::size_t size) noexcept {
  std::size_t at = 0;
  for (; at + kVector512 <= size; at += kVector512) {
    const __m512i a = load512(cursor.base + at);
    const __m512i b = load512(cursor.now + at);
    const std::size_t first = at / kWidth;
    std::byte* const values = cursor.values + cursor.count * kWidth;
    if constexpr (kWidth == 1) {
      const std::uint64_t mask = _mm512_cmpneq_epi8_mask(a, b);
      if (mask == 0) continue;
      const auto low = static_cast<std::uint32_t>(mask);
      const auto found = static_cast<std::size_t>(std::popcount(low));
      put_positions(cursor, low, first, cursor.count);
      put_positions(cursor, static_cast<std::uint32_t>(mask >> 32), first + 32,
                    cursor.count + found);
      _mm512_storeu_si512(values, _mm512_maskz_compress_epi8(mask, b));
      cursor.count += static_cast<std::size_t>(std::popcount(mask));
    } else if constexpr (kWidth == 2) {
      const std::uint32_t mask = _mm512_cmpneq_epi16_mask(a, b);
      if (mask == 0) continue;
      put_positions(cursor, mask, first, cursor.count);
      _mm512_storeu_si512(values, _mm512_maskz_compress_epi16(mask, b));
      cursor.count += static_cast<std::size_t>(std::popcount(mask));
    } else if constexpr (kWidth == 4) {
      const std::uint32_t mask = _mm512_cmpneq_epi32_mask(a, b);
      if (mask == 0) continue;
      put_positions(cursor, mask, first, cursor.count);
      _mm512_storeu_si512(values, _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), b));
      cursor.count += static_cast<std::size_t>(std::popcount(mask));
    } else {
      std::uint32_t mask = _mm512_cmpneq_epi64_mask(a, b);
      if (mask == 0) continue;
      if constexpr (kWidth == 16) {  // an element is two of these
        for (unsigned i = 0; i < 4; ++i) {
          if ((mask >> (2 * i) & 3) != 0) take<kWidth>(cursor, first + i);
        }
      } else {
        put_positions(cursor, mask, first, cursor.count);
        _mm512_storeu_si512(values, _mm512_maskz_compress_epi64(static_cast<__mmask8>(mask), b));
        cursor.count += static_cast<std::size_t>(std::popcount(mask));
      }
    }
  }
  find_each<kWidth>(cursor, at, size);
}

#endif

template <unsigned kWidth>
void find(Cursor& cursor, std::size_t size, VectorSet set) noexcept {
#ifdef __x86_64__
  if (set == VectorSet::avx512) return find_avx512<kWidth>(cursor, size);
  if (set == VectorSet::avx2) return find_avx2<kWidth>(cursor, size);
#endif
  static_cast<void>(set);
  find_portable<kWidth>(cursor, size);
}

}  // namespace

std::size_t find_changed(ByteSpan base, ByteSpan now, unsigned width, ChangedElements out,
                         VectorSet set) noexcept {
  Cursor cursor{base.data(), now.data(), out.positions, out.values};
  switch (width) {
    case 1:
      find<1>(cursor, now.size(), set);
      break;
    case 2:
      find<2>(cursor, now.size(), set);
      break;
    case 4:
      find<4>(cursor, now.size(), set);
      break;
    case 8:
      find<8>(cursor, now.size(), set);
      break;
    default:
      find<16>(cursor, now.size(), set);
      break;
  }
  return cursor.count;
}

}  // namespace thalia::codec
