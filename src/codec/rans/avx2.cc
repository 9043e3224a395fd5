// The kernels of plane_entropy with AVX2, a group of 32 symbols at a time in four vectors of eight
// states. AVX2 can neither compress nor expand lanes, so a table of all 256 masks of eight states
// says how the words of those that want one are put side by side. Tables are read with gathers.
#ifdef __x86_64__
#include <array>
#include <bit>

#include "codec/cpu/intrinsics.h"
#include "codec/rans/kernels.h"

namespace thalia::codec {
namespace {

constexpr std::size_t kLanes = 8, kVectors = kRansStates / kLanes;

struct Masks {
  /// The order of the bytes of eight words that moves the chosen words to the end.
  alignas(64) std::array<std::array<std::uint8_t, 16>, 256> to_end;
  /// For each lane the word that it takes, if it takes one.
  alignas(64) std::array<std::array<std::uint8_t, 8>, 256> taken;
};
constexpr Masks all_masks() {
  Masks out = {};
  for (unsigned mask = 0; mask < 256; ++mask) {
    auto place = static_cast<unsigned>(8 - std::popcount(mask));
    std::uint8_t next = 0;
    for (unsigned lane = 0; lane < 8; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      out.to_end[mask][2 * place] = static_cast<std::uint8_t>(2 * lane);
      out.to_end[mask][2 * place + 1] = static_cast<std::uint8_t>(2 * lane + 1);
      ++place;
      out.taken[mask][lane] = next++;
    }
  }
  return out;
}
constexpr Masks kMasks = all_masks();

THALIA_AVX2 inline __m256i all(std::uint32_t value) noexcept {
  return _mm256_set1_epi32(static_cast<int>(value));
}
THALIA_AVX2 inline __m256i load_states(const std::uint32_t* at) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
THALIA_AVX2 inline void store_states(std::uint32_t* at, __m256i states) noexcept {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), states);
}
// Eight bytes, or indices, as lanes of 32 bits.
THALIA_AVX2 inline __m256i load_bytes(const void* at) noexcept {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(at)));
}
THALIA_AVX2 inline __m256i look_up(const std::uint32_t* table, __m256i index) noexcept {
  return _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), index, 4);
}
THALIA_AVX2 inline std::uint32_t mask_of(__m256i lanes) noexcept {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}

// A set of bytes as two tables of 16 rows, since a shuffle looks up 16 entries: row l has bit h
// where byte 16 × (first + h) + l is in the set.
THALIA_AVX2 inline __m256i rows_of(const ByteSet& set, unsigned first) noexcept {
  alignas(16) std::uint8_t rows[16] = {};
  for (unsigned high = 0; high < 8; ++high)
    for (unsigned low = 0; low < 16; ++low)
      rows[low] |= static_cast<std::uint8_t>(set.has[16 * (first + high) + low] & 1u << high);
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(rows)));
}

THALIA_AVX2 void count_others(const ByteSet& known, const std::byte* bytes, std::size_t count,
                              std::uint32_t* counts) noexcept {
  const __m256i lower = rows_of(known, 0), upper = rows_of(known, 8);
  const __m256i bit_of = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  const __m256i low_bits = _mm256_set1_epi8(0x0f);
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i in = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + i));
    const __m256i low = _mm256_and_si256(in, low_bits);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(in, 4), low_bits);
    // The highest bit of `in` says which half its row is in.
    const __m256i rows =
        _mm256_blendv_epi8(_mm256_shuffle_epi8(lower, low), _mm256_shuffle_epi8(upper, low), in);
    const __m256i is_other = _mm256_cmpeq_epi8(
        _mm256_and_si256(rows, _mm256_shuffle_epi8(bit_of, high)), _mm256_setzero_si256());
    auto others = static_cast<std::uint32_t>(_mm256_movemask_epi8(is_other));
    for (; others != 0; others &= others - 1)
      ++counts[std::to_integer<std::size_t>(bytes[i + std::countr_zero(others)])];
  }
  count_other_bytes(known, bytes + i, count - i, counts);
}

THALIA_AVX2 inline std::byte* encode_lanes(const RansEncodeTable& table, const std::byte* symbols,
                                           __m256i& state, std::byte* words) noexcept {
  const __m256i index = load_bytes(symbols);
  const __m256i reciprocal = look_up(table.reciprocal, index);
  const __m256i step = look_up(table.step, index);
  const __m256i complement = _mm256_and_si256(step, all(0xfff));
  // A frequency is at most 4095 and a state less than 2^31, so both are positive as signed
  // integers: AVX2 has no unsigned comparison.
  const __m256i bound = _mm256_slli_epi32(_mm256_sub_epi32(all(kRansScale), complement), 19);
  const __m256i is_below = _mm256_cmpgt_epi32(bound, state);
  const std::uint32_t mask = mask_of(is_below) ^ 0xff;
  const __m256i lowest = _mm256_and_si256(state, all(0xffff));
  const __m128i packed =
      _mm_packus_epi32(_mm256_castsi256_si128(lowest), _mm256_extracti128_si256(lowest, 1));
  const __m128i order =
      _mm_load_si128(reinterpret_cast<const __m128i*>(kMasks.to_end[mask].data()));
  // 16 bytes are always written, with the chosen words at their end. What is below the first of
  // them is overwritten by the words of earlier symbols; below the last words is the slack.
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words - 16), _mm_shuffle_epi8(packed, order));
  state = _mm256_blendv_epi8(_mm256_srli_epi32(state, 16), state, is_below);
  // The upper halves of eight products of 32 bits: products of 64 bits are made of every second
  // lane only.
  const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(state, reciprocal), 32);
  const __m256i odd =
      _mm256_mul_epu32(_mm256_srli_epi64(state, 32), _mm256_srli_epi64(reciprocal, 32));
  const __m256i high = _mm256_blend_epi32(even, odd, 0xAA);
  const __m256i quotient = _mm256_srlv_epi32(high, _mm256_srli_epi32(step, 25));
  const __m256i added = _mm256_and_si256(_mm256_srli_epi32(step, 12), all(0x1fff));
  state =
      _mm256_add_epi32(_mm256_add_epi32(state, added), _mm256_mullo_epi32(quotient, complement));
  return words - 2 * std::popcount(mask);
}

THALIA_AVX2 std::byte* encode(const RansEncodeTable& table, const std::byte* symbols,
                              std::size_t groups, std::uint32_t* states,
                              std::byte* words) noexcept {
  __m256i state[kVectors];
  for (std::size_t i = 0; i < kVectors; ++i) state[i] = load_states(states + i * kLanes);
  while (groups-- > 0) {
    // Backward, as the words are: decoding takes them from state 0 on.
    for (std::size_t i = kVectors; i-- > 0;) {
      const std::byte* const from = symbols + groups * kRansStates + i * kLanes;
      words = encode_lanes(table, from, state[i], words);
    }
  }
  for (std::size_t i = 0; i < kVectors; ++i) store_states(states + i * kLanes, state[i]);
  return words;
}

// Takes a symbol out of each of eight states. Returns entries, whose lowest bytes are the symbols.
THALIA_AVX2 inline __m256i decode_lanes(const RansDecodeTable& table, __m256i& state) noexcept {
  const __m256i slot = _mm256_and_si256(state, all(kRansScale - 1));
  const __m256i entry = look_up(table.entry, slot);
  const __m256i frequency = _mm256_and_si256(_mm256_srli_epi32(entry, 8), all(0xfff));
  const __m256i product = _mm256_mullo_epi32(frequency, _mm256_srli_epi32(state, kRansBits));
  state = _mm256_add_epi32(product, _mm256_srli_epi32(entry, 20));
  return _mm256_and_si256(entry, all(0xff));
}

THALIA_AVX2 inline void take_words(const std::byte*& words, __m256i& state) noexcept {
  const __m256i is_low = _mm256_cmpgt_epi32(all(kRansLow), state);
  const std::uint32_t mask = mask_of(is_low);
  const __m256i next =
      _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words)));
  const __m256i taken = _mm256_permutevar8x32_epi32(next, load_bytes(kMasks.taken[mask].data()));
  const __m256i filled = _mm256_or_si256(_mm256_slli_epi32(state, 16), taken);
  state = _mm256_blendv_epi8(state, filled, is_low);
  words += 2 * std::popcount(mask);
}

THALIA_AVX2 std::size_t decode(RansRun& run, std::size_t groups) noexcept {
  __m256i state[kVectors];
  for (std::size_t i = 0; i < kVectors; ++i) state[i] = load_states(run.states + i * kLanes);
  const std::byte* at = run.words;
  std::size_t done = 0;
  // A group takes at most a word for each state, so with so many left no load passes the end; the
  // rest is decoded one symbol at a time.
  for (; done < groups && run.end - at >= kRansGroupBytes; ++done) {
    __m256i entry[kVectors];
    for (std::size_t i = 0; i < kVectors; ++i) entry[i] = decode_lanes(run.table, state[i]);
    const __m256i first = _mm256_packus_epi32(entry[0], entry[1]);
    const __m256i second = _mm256_packus_epi32(entry[2], entry[3]);
    // Packing works within halves of vectors, which leaves runs of four symbols out of order.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second), order);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(run.symbols + done * kRansStates), packed);
    for (std::size_t i = 0; i < kVectors; ++i) take_words(at, state[i]);
  }
  run.words = at;
  for (std::size_t i = 0; i < kVectors; ++i) store_states(run.states + i * kLanes, state[i]);
  return done;
}

}  // namespace

const RansKernels kAvx2Rans = {.count_others = count_others, .encode = encode, .decode = decode};

}  // namespace thalia::codec
#endif
