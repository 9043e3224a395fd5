// Counting for step_delta with AVX-512, and the extra bits: what is done before the states are.
// What is rare in a block is gathered first and then gone through by itself, as a loop that ends at
// another place each time costs more than the work in it.
#ifdef __x86_64__
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "codec/cpu/intrinsics.h"
#include "codec/step/avx512_elements.h"
#include "codec/step/kernels.h"

namespace thalia::codec::step_avx512 {
namespace {

/// Elements that are gathered at a time: no byte counts as far as 255.
constexpr std::size_t kBlock = 4096;
/// What is gathered in a block, a whole vector written beyond the last.
template <typename Item>
struct Gathered {
  std::size_t count = 0;
  alignas(64) Item items[kBlock + 64 / sizeof(Item)];
};
/// Fewer are counted one at a time: tables are not worth it.
constexpr std::size_t kFewElements = 2048;
/// Equal neighbours would wait for each other's increment in one table.
constexpr std::size_t kTables = 4;

// The symbol of a step down by its distance less 1; an escape is one more than it is.
constexpr auto kSymbolOfDistance = [] {
  std::array<std::uint8_t, 64> symbols{};
  std::size_t magnitude = 1;
  for (std::size_t distance = 1; distance <= symbols.size(); ++distance) {
    if (magnitude < kStepEscape && distance >= kStepLeast[magnitude + 1]) ++magnitude;
    symbols[distance - 1] = static_cast<std::uint8_t>(2 * magnitude);
  }
  return symbols;
}();

// One after the other, in tables that take turns.
template <typename Item, std::size_t kSize>
void count_each(const Gathered<Item>& gathered, std::uint32_t (&tables)[kTables][kSize]) noexcept {
  constexpr std::size_t kAtATime = 8 / sizeof(Item);
  constexpr unsigned kBits = 8 * sizeof(Item);
  std::size_t i = 0;
  for (; i + kAtATime <= gathered.count; i += kAtATime) {
    std::uint64_t several;
    std::memcpy(&several, gathered.items + i, sizeof(several));
    for (unsigned k = 0; k < kAtATime; ++k)
      ++tables[k % kTables][static_cast<Item>(several >> (kBits * k))];
  }
  for (; i < gathered.count; ++i) ++tables[0][gathered.items[i]];
}

// Exponents of a block. Those of weights are within 16 of the greatest, nearly all: each of them
// has a vector of counts of a byte each. The others are gathered.
class ExponentCounter {
 public:
  THALIA_AVX512 void count(const Gathered<std::uint8_t>& exponents, __m512i greatest) noexcept {
    constexpr unsigned kNear = 16;
    const unsigned most = greatest_of(greatest);
    const unsigned first = most < kNear ? 0 : most - kNear + 1;
    const __m512i least = bytes_of(first);
    __m512i counts[kNear];
    for (__m512i& one : counts) one = _mm512_setzero_si512();
    others_.count = 0;
    for (std::size_t i = 0; i < exponents.count; i += 64) {
      const __m512i exponent = _mm512_load_si512(exponents.items + i);
      const __m512i above = _mm512_sub_epi8(exponent, least);
#pragma GCC unroll 16
      for (unsigned k = 0; k < kNear; ++k) {
        const __mmask64 is_equal = _mm512_cmpeq_epi8_mask(above, bytes_of(k));
        counts[k] = _mm512_mask_add_epi8(counts[k], is_equal, counts[k], bytes_of(1));
      }
      const __mmask64 is_other = _mm512_cmpge_epu8_mask(above, bytes_of(kNear));
      if (is_other == 0) continue;
      _mm512_storeu_si512(others_.items + others_.count,
                          _mm512_maskz_compress_epi8(is_other, exponent));
      others_.count += static_cast<std::size_t>(std::popcount(is_other));
    }
    for (unsigned k = 0; k < kNear; ++k) {
      const __m512i sums = _mm512_sad_epu8(counts[k], _mm512_setzero_si512());
      tables_[0][first + k] += static_cast<std::uint32_t>(_mm512_reduce_add_epi64(sums));
    }
    count_each(others_, tables_);
  }

  std::uint32_t operator[](std::size_t exponent) const noexcept {
    std::uint32_t sum = 0;
    for (const auto& table : tables_) sum += table[exponent];
    return sum;
  }

 private:
  THALIA_AVX512 static __m512i bytes_of(unsigned value) noexcept {
    return _mm512_set1_epi8(static_cast<char>(value));
  }
  THALIA_AVX512 static unsigned greatest_of(__m512i bytes) noexcept {
    alignas(64) std::uint8_t each[64];
    _mm512_store_si512(each, bytes);
    return *std::max_element(std::begin(each), std::end(each));
  }

  std::uint32_t tables_[kTables][kStepExponents] = {};
  Gathered<std::uint8_t> others_;
};

// Exponents and symbols of what changed, gathered.
class ChangeCounter {
 public:
  template <std::size_t kBytes>
  THALIA_AVX512 void add(const StepElements<kBytes>& elements, __m512i old, __m512i now,
                         __m512i exponent, __mmask32 changed) noexcept {
    const __m512i steps = elements.steps(old, now);
    const __m512i distance = _mm512_abs_epi16(steps);
    const __m512i index = _mm512_sub_epi16(_mm512_min_epu16(distance, words_of(64)), words_of(1));
    const __m512i down = _mm512_maskz_permutexvar_epi8(
        0x5555555555555555, index, _mm512_loadu_si512(kSymbolOfDistance.data()));
    // Up has the number before down, and so has the escape.
    const __mmask32 is_down =
        _mm512_movepi16_mask(steps) & _mm512_cmplt_epu16_mask(distance, words_of(64));
    const __m512i symbol = _mm512_mask_sub_epi16(down, ~is_down, down, words_of(1));
    const __m512i place = _mm512_or_si512(_mm512_slli_epi16(exponent, 4), symbol);
    _mm512_storeu_si512(gathered_.items + gathered_.count,
                        _mm512_maskz_compress_epi16(changed, place));
    gathered_.count += static_cast<std::size_t>(std::popcount(changed));
  }
  // Once a block.
  void count() noexcept {
    count_each(gathered_, tables_);
    gathered_.count = 0;
  }
  std::uint32_t at(std::size_t exponent, std::size_t symbol) const noexcept {
    std::uint32_t sum = 0;
    for (const auto& table : tables_) sum += table[exponent * kStepSymbols + symbol];
    return sum;
  }

 private:
  std::uint32_t tables_[kTables][kStepExponents * kStepSymbols] = {};
  Gathered<std::uint16_t> gathered_;
};

template <std::size_t kBytes>
THALIA_AVX512 void count_elements(const StepKind& kind, const std::byte* base,
                                  const std::byte* next, std::size_t count,
                                  StepExponentCounts& counts) noexcept {
  if (count < kFewElements) return step_count_some(kind, base, next, count, counts);
  const StepElements<kBytes> elements(kind);
  ExponentCounter exponents;
  ChangeCounter changes;
  Gathered<std::uint8_t> in_block;
  constexpr std::size_t kPair = 2 * kGroup;
  const std::size_t whole = count - count % kPair;
  for (std::size_t begin = 0; begin < whole; begin += kBlock) {
    in_block.count = std::min(kBlock, whole - begin);
    __m512i greatest = _mm512_setzero_si512();
    for (std::size_t i = 0; i < in_block.count; i += kPair) {
      const std::size_t at = (begin + i) * kBytes, after = at + kGroup * kBytes;
      const __m512i old = elements.load(base + at, ~__mmask32{0});
      const __m512i now = elements.load(next + at, ~__mmask32{0});
      const __m512i old_after = elements.load(base + after, ~__mmask32{0});
      const __m512i now_after = elements.load(next + after, ~__mmask32{0});
      const __m512i exponent = elements.exponents(old);
      const __m512i exponent_after = elements.exponents(old_after);
      // Their order is another; it does not matter.
      const __m512i both = _mm512_packus_epi16(exponent, exponent_after);
      greatest = _mm512_max_epu8(greatest, both);
      _mm512_store_si512(in_block.items + i, both);
      const __mmask32 changed = _mm512_cmpneq_epi16_mask(old, now);
      const __mmask32 changed_after = _mm512_cmpneq_epi16_mask(old_after, now_after);
      if (changed != 0) changes.add(elements, old, now, exponent, changed);
      if (changed_after != 0)
        changes.add(elements, old_after, now_after, exponent_after, changed_after);
    }
    exponents.count(in_block, greatest);
    changes.count();
  }
  for (std::size_t i = 0; i < kStepExponents; ++i) {
    std::uint32_t unchanged = exponents[i];
    if (unchanged == 0) continue;
    for (std::size_t k = 1; k < kStepSymbols; ++k) {
      const std::uint32_t changed = changes.at(i, k);
      counts[i][k] += changed;
      unchanged -= changed;
    }
    counts[i][0] += unchanged;
  }
  step_count_some(kind, base + whole * kBytes, next + whole * kBytes, count - whole, counts);
}

// Appends several bits at a time.
class ExtraBits {
 public:
  explicit ExtraBits(StepBitSink& sink) noexcept : sink_(sink) {}

  template <std::size_t kBytes>
  THALIA_AVX512 void add(__m512i steps) noexcept {
    const __m512i distance = _mm512_abs_epi16(steps);
    const __mmask32 far = _mm512_cmpge_epu16_mask(distance, words_of(kStepLeast[4]));
    // The leading digit of 4 to 63 is bit 2 to 5. It is left out.
    __m512i width = words_of(2);
    for (const unsigned least : {8u, 16u, 32u})
      width = _mm512_mask_add_epi16(width, _mm512_cmpge_epu16_mask(distance, words_of(least)),
                                    width, words_of(1));
    const __mmask32 escapes = _mm512_cmpge_epu16_mask(distance, words_of(kStepLeast[kStepEscape]));
    __m512i value = _mm512_andnot_si512(_mm512_sllv_epi16(words_of(1), width), distance);
    const __m512i whole = kBytes == 1 ? _mm512_and_si512(steps, words_of(0xff)) : steps;
    value = _mm512_mask_mov_epi16(value, escapes, whole);
    width = _mm512_mask_mov_epi16(width, escapes, words_of(8 * kBytes));
    _mm512_storeu_si512(values_.items + values_.count, _mm512_maskz_compress_epi16(far, value));
    _mm512_storeu_si512(widths_ + values_.count, _mm512_maskz_compress_epi16(far, width));
    values_.count += static_cast<std::size_t>(std::popcount(far));
  }
  // Once a block.
  void append() noexcept {
    StepBitSink to = sink_;
    const std::size_t count = values_.count;
    // Nothing follows the last of an odd number.
    values_.items[count] = widths_[count] = 0;
    for (std::size_t i = 0; i < count; i += 2) {
      const unsigned width = widths_[i];
      const std::uint64_t two = values_.items[i] | static_cast<std::uint64_t>(values_.items[i + 1])
                                                       << width;
      to.pending |= two << to.count;
      to.count += width + widths_[i + 1];
      // Some bytes more than there are; the sink has room for them.
      std::memcpy(to.at, &to.pending, sizeof(to.pending));
      const unsigned bytes = to.count / 8;
      to.at += bytes;
      to.pending >>= 8 * bytes;
      to.count %= 8;
    }
    sink_ = to;
    values_.count = 0;
  }

 private:
  StepBitSink& sink_;
  Gathered<std::uint16_t> values_;
  alignas(64) std::uint16_t widths_[sizeof(values_.items) / sizeof(std::uint16_t)];
};

template <std::size_t kBytes>
THALIA_AVX512 void append_extras(const StepKind& kind, const std::byte* base, const std::byte* next,
                                 std::size_t count, StepBitSink& sink) noexcept {
  const StepElements<kBytes> elements(kind);
  ExtraBits extras(sink);
  const std::size_t whole = count - count % kGroup;
  for (std::size_t begin = 0; begin < whole; begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, whole);
    for (std::size_t i = begin; i < end; i += kGroup) {
      const __m512i old = elements.load(base + i * kBytes, ~__mmask32{0});
      const __m512i now = elements.load(next + i * kBytes, ~__mmask32{0});
      if (_mm512_cmpneq_epi16_mask(old, now) != 0) extras.add<kBytes>(elements.steps(old, now));
    }
    extras.append();
  }
  step_extras_some(kind, base + whole * kBytes, next + whole * kBytes, count - whole, sink);
}

}  // namespace

void count(const StepKind& kind, const std::byte* base, const std::byte* next, std::size_t count,
           StepExponentCounts& counts) noexcept {
  (kind.bytes == 1 ? count_elements<1> : count_elements<2>)(kind, base, next, count, counts);
}

void extras(const StepKind& kind, const std::byte* base, const std::byte* next, std::size_t count,
            StepBitSink& sink) noexcept {
  (kind.bytes == 1 ? append_extras<1> : append_extras<2>)(kind, base, next, count, sink);
}

}  // namespace thalia::codec::step_avx512
#endif
