// The kernels of packed_exponents with AVX2, 32 bytes at a time. AVX2 has no table of 256 bytes to
// look codes up in, so each symbol of the code, 15 at most, is compared with all bytes at once. Two
// halves of 32 bytes make a group; their planes are the lower and upper 4 bytes of the group's
// words.
#ifdef __x86_64__
#include <bit>
#include <cstring>

#include "codec/cpu/intrinsics.h"
#include "codec/exponents/kernels.h"

namespace thalia::codec {
namespace {

constexpr std::size_t kHalf = kGroup / 2;

THALIA_AVX2 inline __m256i load_half(const std::byte* at) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
THALIA_AVX2 inline void store_half(std::byte* at, __m256i half) noexcept {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), half);
}
THALIA_AVX2 inline __m256i all(unsigned value) noexcept {
  return _mm256_set1_epi8(static_cast<char>(value));
}

// Bit j of each of 32 bytes. A shift left within words of 16 bits moves bit j to the highest bit of
// each byte, which is all that movemask looks at; what crosses from byte to byte is below it.
THALIA_AVX2 inline std::uint32_t bit_plane(__m256i bytes, unsigned j) noexcept {
  const __m256i shifted = _mm256_sll_epi16(bytes, _mm_cvtsi32_si128(static_cast<int>(7 - j)));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(shifted));
}
THALIA_AVX2 inline void store_plane(std::byte* at, std::uint32_t plane) noexcept {
  std::memcpy(at, &plane, sizeof(plane));
}

// The inverse of bit_plane(): byte i becomes 1 << j where bit i of the plane is set, else 0. The
// shuffle gives each byte the byte of the plane that has its bit, and the mask selects the bit.
THALIA_AVX2 inline __m256i spread_plane(const std::byte* at, unsigned j) noexcept {
  std::uint32_t plane;
  std::memcpy(&plane, at, sizeof(plane));
  const __m256i byte_of =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit_of = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  const __m256i words = _mm256_set1_epi32(static_cast<int>(plane));
  const __m256i bits = _mm256_and_si256(_mm256_shuffle_epi8(words, byte_of), bit_of);
  return _mm256_and_si256(_mm256_cmpeq_epi8(bits, bit_of), all(1u << j));
}

// A group seldom has more than three escapes. Three are therefore always written, without a branch
// on their number that would be mispredicted. Those that were too many are overwritten by the next
// group's; after the last group they fall into kEscapeSlack. The bit that is set in `escaped`
// keeps countr_zero() below 64 where no escape is left.
THALIA_AVX2 inline std::byte* write_escapes(std::uint64_t escaped, const std::byte* bytes,
                                            std::byte symbol_mask, std::byte* escapes) noexcept {
  const int count = std::popcount(escaped);
  const auto write_next = [&](int k) {
    const int place = std::countr_zero(escaped | std::uint64_t{1} << (kGroup - 1));
    escapes[k] = bytes[place] & symbol_mask;
    escaped &= escaped - 1;
  };
  for (int k = 0; k < 3; ++k) write_next(k);
  for (int k = 3; k < count; ++k) write_next(k);
  return escapes + count;
}

template <unsigned kBits>
THALIA_AVX2 std::byte* pack(const ExponentLookup& lookup, const std::byte* bytes,
                            std::size_t groups, std::byte* codes, std::byte* escapes) noexcept {
  constexpr unsigned kEscape = (1u << kBits) - 1;
  const ExponentCode& code = lookup.code;
  __m256i symbols[kEscape];
  for (unsigned i = 0; i < kEscape; ++i) symbols[i] = all(code.symbols[i]);
  for (; groups > 0; --groups, codes += 8 * kBits, bytes += kGroup) {
    std::uint64_t escaped = 0;
    for (std::size_t half = 0; half < 2; ++half) {
      const __m256i in = _mm256_and_si256(load_half(bytes + half * kHalf), all(code.symbol_mask()));
      // Starts as the escape; the exclusive or turns that into i where symbol i is found. Symbols
      // are distinct, so that happens at most once.
      __m256i found = all(kEscape);
      for (unsigned i = 0; i < kEscape; ++i) {
        const __m256i is_here = _mm256_cmpeq_epi8(in, symbols[i]);
        found = _mm256_xor_si256(found, _mm256_and_si256(is_here, all(i ^ kEscape)));
      }
      std::uint32_t escaped_here = ~std::uint32_t{0};
      for (unsigned j = 0; j < kBits; ++j) {
        const std::uint32_t plane = bit_plane(found, j);
        store_plane(codes + 8 * j + 4 * half, plane);
        // The escape has all bits set, and no other code has.
        escaped_here &= plane;
      }
      escaped |= std::uint64_t{escaped_here} << (half * kHalf);
    }
    escapes = write_escapes(escaped, bytes, std::byte{code.symbol_mask()}, escapes);
  }
  return escapes;
}

THALIA_AVX2 std::byte* pack_any(const ExponentLookup& lookup, const std::byte* bytes,
                                std::size_t groups, std::byte* codes, std::byte* escapes) noexcept {
  // The number of bits is a template parameter, so that the inner loops unroll.
  constexpr decltype(ExponentKernels::pack) kPacks[] = {pack<1>, pack<2>, pack<3>, pack<4>};
  return kPacks[lookup.code.code_bits - 1](lookup, bytes, groups, codes, escapes);
}

template <unsigned kBits>
THALIA_AVX2 const std::byte* unpack(const ExponentCode& code, const std::byte* codes,
                                    std::size_t groups, const std::byte* escapes,
                                    const std::byte* end, std::byte* bytes) noexcept {
  const __m256i symbols = _mm256_broadcastsi128_si256(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(code.symbols.data())));
  const __m256i escape = all((1u << kBits) - 1);
  for (; groups > 0; --groups, codes += 8 * kBits) {
    for (std::size_t half = 0; half < 2; ++half, bytes += kHalf) {
      __m256i found = _mm256_setzero_si256();
      for (unsigned j = 0; j < kBits; ++j)
        found = _mm256_or_si256(found, spread_plane(codes + 8 * j + 4 * half, j));
      store_half(bytes, _mm256_shuffle_epi8(symbols, found));
      auto escaped =
          static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(found, escape)));
      // The number of escapes in a header and of codes that ask for one may differ in a hostile
      // file.
      if (std::popcount(escaped) > end - escapes) return nullptr;
      for (; escaped != 0; escaped &= escaped - 1) bytes[std::countr_zero(escaped)] = *escapes++;
    }
  }
  return escapes;
}

THALIA_AVX2 const std::byte* unpack_any(const ExponentCode& code, const std::byte* codes,
                                        std::size_t groups, const std::byte* escapes,
                                        const std::byte* end, std::byte* bytes) noexcept {
  constexpr decltype(ExponentKernels::unpack) kUnpacks[] = {unpack<1>, unpack<2>, unpack<3>,
                                                            unpack<4>};
  return kUnpacks[code.code_bits - 1](code, codes, groups, escapes, end, bytes);
}

THALIA_AVX2 void pack_low(unsigned bits, const std::byte* bytes, std::size_t groups,
                          std::byte* planes) noexcept {
  for (; groups > 0; --groups, bytes += kGroup) {
    for (unsigned j = 0; j < bits; ++j, planes += 8) {
      store_plane(planes, bit_plane(load_half(bytes), j));
      store_plane(planes + 4, bit_plane(load_half(bytes + kHalf), j));
    }
  }
}

THALIA_AVX2 void add_low(unsigned bits, const std::byte* planes, std::size_t groups,
                         std::byte* bytes) noexcept {
  for (; groups > 0; --groups, bytes += kGroup) {
    __m256i lower = load_half(bytes), upper = load_half(bytes + kHalf);
    for (unsigned j = 0; j < bits; ++j, planes += 8) {
      lower = _mm256_or_si256(lower, spread_plane(planes, j));
      upper = _mm256_or_si256(upper, spread_plane(planes + 4, j));
    }
    store_half(bytes, lower);
    store_half(bytes + kHalf, upper);
  }
}

}  // namespace

const ExponentKernels kAvx2Exponents = {
    .pack = pack_any, .unpack = unpack_any, .pack_low = pack_low, .add_low = add_low};

}  // namespace thalia::codec
#endif
