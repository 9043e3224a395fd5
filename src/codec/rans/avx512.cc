// The kernels of plane_entropy with AVX-512, VBMI2 and BITALG, a group of 32 symbols at a time in
// two vectors of 16 states. Compress and expand put the words of the states that want one side by
// side.
#ifdef __x86_64__
#include <array>
#include <bit>

#include "codec/cpu/intrinsics.h"
#include "codec/rans/kernels.h"

namespace thalia::codec {
namespace {

constexpr std::size_t kHalf = 16;
// 0 to 31: where each word of a vector is.
constexpr auto kPlaces = [] {
  std::array<std::uint16_t, kRansStates> places{};
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::uint16_t>(i);
  return places;
}();

THALIA_AVX512 inline __m512i all(std::uint32_t value) noexcept {
  return _mm512_set1_epi32(static_cast<int>(value));
}
THALIA_AVX512 inline __m512i load_bytes(const std::byte* at) noexcept {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

THALIA_AVX512 void count_others(const ByteSet& known, const std::byte* bytes, std::size_t count,
                                std::uint32_t* counts) noexcept {
  const __m512i quarter0 = _mm512_load_si512(known.has);
  const __m512i quarter1 = _mm512_load_si512(known.has + 64);
  const __m512i quarter2 = _mm512_load_si512(known.has + 128);
  const __m512i quarter3 = _mm512_load_si512(known.has + 192);
  std::size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const __m512i in = _mm512_loadu_si512(bytes + i);
    // A look-up among 256 entries: each permutation looks among 128, and the highest bit of the
    // byte says which of the two holds.
    const __m512i low = _mm512_permutex2var_epi8(quarter0, in, quarter1);
    const __m512i high = _mm512_permutex2var_epi8(quarter2, in, quarter3);
    const __m512i has = _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(in), high);
    for (std::uint64_t others = ~_mm512_movepi8_mask(has); others != 0; others &= others - 1)
      ++counts[std::to_integer<std::size_t>(bytes[i + std::countr_zero(others)])];
  }
  count_other_bytes(known, bytes + i, count - i, counts);
}

// What the table has for each of 16 symbols.
struct Steps {
  __m512i reciprocal;
  __m512i step;
};

THALIA_AVX512 inline Steps gathered(const RansEncodeTable& table,
                                    const std::byte* symbols) noexcept {
  const __m512i index = load_bytes(symbols);
  return {_mm512_i32gather_epi32(index, table.reciprocal, 4),
          _mm512_i32gather_epi32(index, table.step, 4)};
}

// The same for 64 symbols at a time of a compact table, which lies in registers: a gather takes as
// long as 16 loads.
class CompactTable {
 public:
  THALIA_AVX512 explicit CompactTable(const RansEncodeTable& table) noexcept {
    for (std::size_t k = 0; k < 4; ++k) number_[k] = _mm512_load_si512(table.number + 64 * k);
    for (std::size_t k = 0; k < 8; ++k) bytes_[k] = _mm512_load_si512(table.compact[k]);
  }

  THALIA_AVX512 void look_up(const std::byte* symbols, Steps* out) const noexcept {
    // The unpacking below works within each quarter of a vector; with the symbols' fours
    // transposed, it ends in their order.
    const __m512i in = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
        _mm512_loadu_si512(symbols));
    const __m512i low = _mm512_permutex2var_epi8(number_[0], in, number_[1]);
    const __m512i high = _mm512_permutex2var_epi8(number_[2], in, number_[3]);
    const __m512i number = _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(in), high);
    __m512i reciprocals[4], steps[4];
    words(number, bytes_, reciprocals);
    words(number, bytes_ + 4, steps);
    for (std::size_t k = 0; k < 4; ++k) out[k] = {reciprocals[k], steps[k]};
  }

 private:
  // Words of four bytes out of one look-up for each of their bytes.
  THALIA_AVX512 static void words(__m512i number, const __m512i* bytes, __m512i* out) noexcept {
    const __m512i byte0 = _mm512_permutexvar_epi8(number, bytes[0]);
    const __m512i byte1 = _mm512_permutexvar_epi8(number, bytes[1]);
    const __m512i byte2 = _mm512_permutexvar_epi8(number, bytes[2]);
    const __m512i byte3 = _mm512_permutexvar_epi8(number, bytes[3]);
    const __m512i low01 = _mm512_unpacklo_epi8(byte0, byte1);
    const __m512i high01 = _mm512_unpackhi_epi8(byte0, byte1);
    const __m512i low23 = _mm512_unpacklo_epi8(byte2, byte3);
    const __m512i high23 = _mm512_unpackhi_epi8(byte2, byte3);
    out[0] = _mm512_unpacklo_epi16(low01, low23);
    out[1] = _mm512_unpackhi_epi16(low01, low23);
    out[2] = _mm512_unpacklo_epi16(high01, high23);
    out[3] = _mm512_unpackhi_epi16(high01, high23);
  }

  __m512i number_[4];
  __m512i bytes_[8];
};

// Encodes a symbol into each of 16 states. Returns which states give up a word first; `words` are
// the lowest 16 bits of all states, of which only those are written.
THALIA_AVX512 inline __mmask16 encode_half(const Steps& steps, __m512i& state,
                                           __m256i& words) noexcept {
  const auto [reciprocal, step] = steps;
  const __m512i complement = _mm512_and_si512(step, all(0xfff));
  const __m512i bound = _mm512_slli_epi32(_mm512_sub_epi32(all(kRansScale), complement), 19);
  const __mmask16 is_full = _mm512_cmpge_epu32_mask(state, bound);
  words = _mm512_cvtepi32_epi16(state);
  state = _mm512_mask_srli_epi32(state, is_full, state, 16);
  const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(state, reciprocal), 32);
  const __m512i odd =
      _mm512_mul_epu32(_mm512_srli_epi64(state, 32), _mm512_srli_epi64(reciprocal, 32));
  const __m512i high = _mm512_mask_mov_epi32(even, 0xAAAA, odd);
  const __m512i quotient = _mm512_srlv_epi32(high, _mm512_srli_epi32(step, 25));
  const __m512i added = _mm512_and_si512(_mm512_srli_epi32(step, 12), all(0x1fff));
  state =
      _mm512_add_epi32(_mm512_add_epi32(state, added), _mm512_mullo_epi32(quotient, complement));
  return is_full;
}

// The states of a group, and where the words of the next one end.
struct Encoder {
  __m512i lower, upper;
  std::byte* words;

  THALIA_AVX512 void encode(const Steps& lower_steps, const Steps& upper_steps,
                            __m512i places) noexcept {
    __m256i lower_words, upper_words;
    const __mmask32 lower_full = encode_half(lower_steps, lower, lower_words);
    const __mmask32 upper_full = encode_half(upper_steps, upper, upper_words);
    const __mmask32 is_full = lower_full | upper_full << kHalf;
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(lower_words), upper_words, 1);
    const int count = std::popcount(is_full);
    // 64 bytes are always written, with the chosen words at their end. What is below the first of
    // them is overwritten by the words of earlier symbols; below the last words is the slack.
    const __m512i packed = _mm512_maskz_compress_epi16(is_full, both);
    const __m512i order = _mm512_add_epi16(places, _mm512_set1_epi16(static_cast<short>(count)));
    _mm512_storeu_si512(words - 64, _mm512_permutexvar_epi16(order, packed));
    words -= 2 * count;
  }
};

THALIA_AVX512 std::byte* encode(const RansEncodeTable& table, const std::byte* symbols,
                                std::size_t groups, std::uint32_t* states,
                                std::byte* words) noexcept {
  const __m512i places = _mm512_loadu_si512(kPlaces.data());
  Encoder encoder{_mm512_loadu_si512(states), _mm512_loadu_si512(states + kHalf), words};
  // Pairs of groups if the table is compact, from the last one down to the first.
  const std::size_t single = table.is_compact ? groups % 2 : groups;
  for (std::size_t i = 0; i < single; ++i) {
    const std::byte* const from = symbols + --groups * kRansStates;
    encoder.encode(gathered(table, from), gathered(table, from + kHalf), places);
  }
  if (groups != 0) {
    const CompactTable compact(table);
    for (; groups != 0; groups -= 2) {
      Steps steps[4];
      compact.look_up(symbols + (groups - 2) * kRansStates, steps);
      encoder.encode(steps[2], steps[3], places);
      encoder.encode(steps[0], steps[1], places);
    }
  }
  _mm512_storeu_si512(states, encoder.lower);
  _mm512_storeu_si512(states + kHalf, encoder.upper);
  return encoder.words;
}

// Takes a symbol out of each of 16 states, and says which want a word.
THALIA_AVX512 inline __mmask16 decode_half(const RansDecodeTable& table, __m512i& state,
                                           std::byte* symbols) noexcept {
  const __m512i slot = _mm512_and_si512(state, all(kRansScale - 1));
  const __m512i entry = _mm512_i32gather_epi32(slot, table.entry, 4);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(symbols), _mm512_cvtepi32_epi8(entry));
  const __m512i frequency = _mm512_and_si512(_mm512_srli_epi32(entry, 8), all(0xfff));
  const __m512i product = _mm512_mullo_epi32(frequency, _mm512_srli_epi32(state, kRansBits));
  state = _mm512_add_epi32(product, _mm512_srli_epi32(entry, 20));
  return _mm512_cmplt_epu32_mask(state, all(kRansLow));
}

THALIA_AVX512 inline void take_words(const std::byte*& words, __mmask16 wanting,
                                     __m512i& state) noexcept {
  const __m512i next =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)));
  words += 2 * std::popcount(static_cast<std::uint16_t>(wanting));
  const __m512i taken = _mm512_maskz_expand_epi32(wanting, next);
  state = _mm512_or_si512(_mm512_mask_slli_epi32(state, wanting, state, 16), taken);
}

THALIA_AVX512 std::size_t decode_by_gather(RansRun& run, std::size_t groups) noexcept {
  __m512i lower = _mm512_loadu_si512(run.states), upper = _mm512_loadu_si512(run.states + kHalf);
  const std::byte* at = run.words;
  std::size_t done = 0;
  // A group takes at most a word for each state, so with so many left no load passes the end; the
  // rest is decoded one symbol at a time.
  for (; done < groups && run.end - at >= kRansGroupBytes; ++done) {
    std::byte* const symbols = run.symbols + done * kRansStates;
    const __mmask16 lower_wanting = decode_half(run.table, lower, symbols);
    const __mmask16 upper_wanting = decode_half(run.table, upper, symbols + kHalf);
    take_words(at, lower_wanting, lower);
    take_words(at, upper_wanting, upper);
  }
  run.words = at;
  _mm512_storeu_si512(run.states, lower);
  _mm512_storeu_si512(run.states + kHalf, upper);
  return done;
}

// The 32 states of a group as their lower and their upper halves, so that a group is one vector.
struct Halves {
  __m512i low;
  __m512i high;
};

THALIA_AVX512 inline __m512i words_of(std::uint16_t value) noexcept {
  return _mm512_set1_epi16(static_cast<short>(value));
}

THALIA_AVX512 inline Halves load_states(const std::uint32_t* states) noexcept {
  const __m512i first = _mm512_loadu_si512(states), second = _mm512_loadu_si512(states + kHalf);
  const __m512i even = _mm512_slli_epi16(_mm512_loadu_si512(kPlaces.data()), 1);
  return {_mm512_permutex2var_epi16(first, even, second),
          _mm512_permutex2var_epi16(first, _mm512_or_si512(even, words_of(1)), second)};
}

THALIA_AVX512 inline __m512i joined(__m256i low, __m256i high) noexcept {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

THALIA_AVX512 inline void store_states(const Halves& halves, std::uint32_t* states) noexcept {
  _mm512_storeu_si512(
      states, joined(_mm512_castsi512_si256(halves.low), _mm512_castsi512_si256(halves.high)));
  _mm512_storeu_si512(states + kHalf, joined(_mm512_extracti64x4_epi64(halves.low, 1),
                                             _mm512_extracti64x4_epi64(halves.high, 1)));
}

// Looks up words in a table of 64, by the lowest 6 bits of each word of `index`.
THALIA_AVX512 inline __m512i word_at(const std::uint16_t* table, __m512i index) noexcept {
  return _mm512_permutex2var_epi16(_mm512_load_si512(table), index, _mm512_load_si512(table + 32));
}

// Looks up bytes in a table of 128, by the lowest 7 bits of each byte of `index`.
THALIA_AVX512 inline __m512i byte_at(const std::uint8_t* table, __m512i index) noexcept {
  return _mm512_permutex2var_epi8(_mm512_load_si512(table), index, _mm512_load_si512(table + 64));
}

// One group. The number of a symbol is how many symbols begin up to the state's slot: those before
// its 16 slots, and bits set among them. Look-ups by that number take its lowest 6 bits; the other
// bits of a word are whatever they are.
THALIA_AVX512 inline void decode_group(const RansDecodeTable& table, Halves& state,
                                       const std::byte*& words, std::byte* symbols) noexcept {
  const __m512i slot = _mm512_and_si512(state.low, words_of(kRansScale - 1));
  const __m512i sixteenth = _mm512_srli_epi16(slot, 4);
  const __mmask32 bit6 = _mm512_test_epi16_mask(sixteenth, words_of(1 << 6));
  const __mmask32 bit7 = _mm512_test_epi16_mask(sixteenth, words_of(1 << 7));
  const __m512i lower = _mm512_mask_blend_epi16(bit6, word_at(table.begins, sixteenth),
                                                word_at(table.begins + 64, sixteenth));
  const __m512i upper = _mm512_mask_blend_epi16(bit6, word_at(table.begins + 128, sixteenth),
                                                word_at(table.begins + 192, sixteenth));
  const __m512i begins = _mm512_mask_blend_epi16(bit7, lower, upper);
  const __m512i before = _mm512_mask_blend_epi16(bit7, byte_at(table.before, sixteenth),
                                                 byte_at(table.before + 128, sixteenth));
  const __m512i up_to =
      _mm512_srlv_epi16(words_of(0xffff), _mm512_andnot_si512(slot, words_of(15)));
  const __m512i number =
      _mm512_add_epi16(before, _mm512_popcnt_epi16(_mm512_and_si512(begins, up_to)));
  _mm256_storeu_si256(
      reinterpret_cast<__m256i*>(symbols),
      _mm512_cvtepi16_epi8(_mm512_permutexvar_epi8(number, _mm512_load_si512(table.symbol))));
  const __m512i frequency = word_at(table.frequency, number);
  const __m512i behind_start = _mm512_sub_epi16(slot, word_at(table.start, number));
  // frequency * (state >> 12) + behind_start, which is below 2^31.
  const __m512i quotient = _mm512_shldi_epi16(state.high, state.low, 16 - kRansBits);
  const __m512i quotient_high = _mm512_srli_epi16(state.high, kRansBits);
  const __m512i low = _mm512_add_epi16(_mm512_mullo_epi16(frequency, quotient), behind_start);
  const __m512i high = _mm512_add_epi16(_mm512_mulhi_epu16(frequency, quotient),
                                        _mm512_mullo_epi16(frequency, quotient_high));
  const __mmask32 carries = _mm512_cmplt_epu16_mask(low, behind_start);
  state.high = _mm512_mask_add_epi16(high, carries, high, words_of(1));
  // A state below 2^15 moves up by a word: all of its upper half and bit 15 are zero.
  const __mmask32 wanting = _mm512_testn_epi16_mask(
      _mm512_or_si512(state.high, _mm512_and_si512(low, words_of(kRansLow))), words_of(0xffff));
  state.high = _mm512_mask_mov_epi16(state.high, wanting, low);
  state.low = _mm512_mask_expand_epi16(low, wanting, _mm512_loadu_si512(words));
  words += 2 * std::popcount(static_cast<std::uint32_t>(wanting));
}

THALIA_AVX512 std::size_t decode(RansRun& run, std::size_t groups) noexcept {
  if (!run.table.is_compact) return decode_by_gather(run, groups);
  Halves state = load_states(run.states);
  const std::byte* at = run.words;
  std::size_t done = 0;
  for (; done < groups && run.end - at >= kRansGroupBytes; ++done)
    decode_group(run.table, state, at, run.symbols + done * kRansStates);
  run.words = at;
  store_states(state, run.states);
  return done;
}

THALIA_AVX512 std::size_t decode_two(RansRun& first, RansRun& second, std::size_t groups) noexcept {
  Halves state = load_states(first.states), other = load_states(second.states);
  const std::byte *at = first.words, *other_at = second.words;
  std::size_t done = 0;
  for (; done < groups && first.end - at >= kRansGroupBytes &&
         second.end - other_at >= kRansGroupBytes;
       ++done) {
    decode_group(first.table, state, at, first.symbols + done * kRansStates);
    decode_group(second.table, other, other_at, second.symbols + done * kRansStates);
  }
  first.words = at;
  second.words = other_at;
  store_states(state, first.states);
  store_states(other, second.states);
  return done;
}

}  // namespace

const RansKernels kAvx512Rans = {
    .count_others = count_others, .encode = encode, .decode = decode, .decode_two = decode_two};

}  // namespace thalia::codec
#endif
