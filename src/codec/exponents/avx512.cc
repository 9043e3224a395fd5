// The kernels of packed_exponents with AVX-512 VBMI and VBMI2, a group of 64 bytes at a time. A
// mask register has one bit for each byte of a vector, which is just what a bit plane is: planes
// are stored and loaded as masks. Compress and expand move the escapes.
#ifdef __x86_64__
#include <cstring>

#include "codec/cpu/intrinsics.h"
#include "codec/exponents/kernels.h"

namespace thalia::codec {
namespace {

THALIA_AVX512 inline __mmask64 load_mask(const std::byte* at) noexcept {
  std::uint64_t mask;
  std::memcpy(&mask, at, sizeof(mask));
  return mask;
}
THALIA_AVX512 inline void store_mask(std::byte* at, __mmask64 mask) noexcept {
  const std::uint64_t word = mask;
  std::memcpy(at, &word, sizeof(word));
}
THALIA_AVX512 inline __m512i bit(unsigned j) noexcept {
  return _mm512_set1_epi8(static_cast<char>(1u << j));
}

template <unsigned kBits>
THALIA_AVX512 std::byte* pack(const ExponentLookup& lookup, const std::byte* bytes,
                              std::size_t groups, std::byte* codes, std::byte* escapes) noexcept {
  const __m512i quarter0 = _mm512_load_si512(lookup.code_of);
  const __m512i quarter1 = _mm512_load_si512(lookup.code_of + 64);
  const __m512i quarter2 = _mm512_load_si512(lookup.code_of + 128);
  const __m512i quarter3 = _mm512_load_si512(lookup.code_of + 192);
  const __m512i symbol_mask = _mm512_set1_epi8(static_cast<char>(lookup.code.symbol_mask()));
  for (; groups > 0; --groups, bytes += kGroup, codes += 8 * kBits) {
    const __m512i in = _mm512_loadu_si512(bytes);
    // A look-up among 256 entries: each permutation looks among 128, and the highest bit of the
    // byte says which of the two holds.
    const __m512i low = _mm512_permutex2var_epi8(quarter0, in, quarter1);
    const __m512i high = _mm512_permutex2var_epi8(quarter2, in, quarter3);
    const __m512i code = _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(in), high);
    std::uint64_t escaped = ~std::uint64_t{0};
    for (unsigned j = 0; j < kBits; ++j) {
      const __mmask64 plane = _mm512_test_epi8_mask(code, bit(j));
      store_mask(codes + 8 * j, plane);
      escaped &= plane;
    }
    // 64 bytes are always stored, at most all of them escapes; what is too much is overwritten by
    // the next group or falls into kEscapeSlack.
    const __m512i symbols = _mm512_and_si512(in, symbol_mask);
    _mm512_storeu_si512(escapes, _mm512_maskz_compress_epi8(escaped, symbols));
    escapes += _mm_popcnt_u64(escaped);
  }
  return escapes;
}

THALIA_AVX512 std::byte* pack_any(const ExponentLookup& lookup, const std::byte* bytes,
                                  std::size_t groups, std::byte* codes,
                                  std::byte* escapes) noexcept {
  constexpr decltype(ExponentKernels::pack) kPacks[] = {pack<1>, pack<2>, pack<3>, pack<4>};
  return kPacks[lookup.code.code_bits - 1](lookup, bytes, groups, codes, escapes);
}

template <unsigned kBits>
THALIA_AVX512 const std::byte* unpack(const ExponentCode& code, const std::byte* codes,
                                      std::size_t groups, const std::byte* escapes,
                                      const std::byte* end, std::byte* bytes) noexcept {
  const __m512i symbols = _mm512_broadcast_i32x4(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(code.symbols.data())));
  for (; groups > 0; --groups, bytes += kGroup, codes += 8 * kBits) {
    __m512i found = _mm512_setzero_si512();
    std::uint64_t escaped = ~std::uint64_t{0};
    for (unsigned j = 0; j < kBits; ++j) {
      const __mmask64 plane = load_mask(codes + 8 * j);
      found = _mm512_or_si512(found, _mm512_maskz_mov_epi8(plane, bit(j)));
      escaped &= plane;
    }
    const auto count = static_cast<std::size_t>(_mm_popcnt_u64(escaped));
    const auto left = static_cast<std::size_t>(end - escapes);
    if (count > left) return nullptr;
    // Fewer than 64 bytes may be left before the end of the stream. Masked bytes are not read, and
    // cause no fault if they lie outside of mapped memory.
    const __mmask64 readable = left >= kGroup ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
    const __m512i next = _mm512_maskz_loadu_epi8(readable, escapes);
    const __m512i coded = _mm512_shuffle_epi8(symbols, found);
    _mm512_storeu_si512(bytes, _mm512_mask_expand_epi8(coded, escaped, next));
    escapes += count;
  }
  return escapes;
}

THALIA_AVX512 const std::byte* unpack_any(const ExponentCode& code, const std::byte* codes,
                                          std::size_t groups, const std::byte* escapes,
                                          const std::byte* end, std::byte* bytes) noexcept {
  constexpr decltype(ExponentKernels::unpack) kUnpacks[] = {unpack<1>, unpack<2>, unpack<3>,
                                                            unpack<4>};
  return kUnpacks[code.code_bits - 1](code, codes, groups, escapes, end, bytes);
}

THALIA_AVX512 void pack_low(unsigned bits, const std::byte* bytes, std::size_t groups,
                            std::byte* planes) noexcept {
  for (; groups > 0; --groups, bytes += kGroup) {
    const __m512i in = _mm512_loadu_si512(bytes);
    for (unsigned j = 0; j < bits; ++j, planes += 8)
      store_mask(planes, _mm512_test_epi8_mask(in, bit(j)));
  }
}

THALIA_AVX512 void add_low(unsigned bits, const std::byte* planes, std::size_t groups,
                           std::byte* bytes) noexcept {
  for (; groups > 0; --groups, bytes += kGroup) {
    __m512i out = _mm512_loadu_si512(bytes);
    for (unsigned j = 0; j < bits; ++j, planes += 8)
      out = _mm512_or_si512(out, _mm512_maskz_mov_epi8(load_mask(planes), bit(j)));
    _mm512_storeu_si512(bytes, out);
  }
}

}  // namespace

const ExponentKernels kAvx512Exponents = {
    .pack = pack_any, .unpack = unpack_any, .pack_low = pack_low, .add_low = add_low};

}  // namespace thalia::codec
#endif
