// The kernels of plane_entropy one symbol at a time: for processors without AVX2, for what is left
// after the last whole group, and what the tests compare the others with.
#include "codec/rans/kernels.h"
#include "format/little_endian.h"

namespace thalia::codec {
namespace {

using format::le16;

inline std::byte* encode_symbol(const RansEncodeTable& table, std::byte symbol,
                                std::uint32_t& state, std::byte* words) noexcept {
  const auto index = std::to_integer<std::size_t>(symbol);
  const std::uint32_t step = table.step[index], complement = step & 0xfff;
  // The symbol would take the state to 2^31 or more: 16 bits go to the words first. One word is
  // always enough.
  if (state >= (kRansScale - complement) << 19) {
    const le16 word = static_cast<std::uint16_t>(state & 0xffff);
    words -= sizeof(word);
    std::memcpy(words, &word, sizeof(word));
    state >>= 16;
  }
  const auto high =
      static_cast<std::uint32_t>(std::uint64_t{state} * table.reciprocal[index] >> 32);
  state += (step >> 12 & 0x1fff) + (high >> (step >> 25)) * complement;
  return words;
}

std::byte* encode(const RansEncodeTable& table, const std::byte* symbols, std::size_t groups,
                  std::uint32_t* states, std::byte* words) noexcept {
  while (groups-- > 0)
    words = rans_encode_some(table, symbols + groups * kRansStates, kRansStates, states, words);
  return words;
}

// The caller takes a word afterwards, if the state wants one and there is one.
inline void decode_symbol(const RansDecodeTable& table, std::uint32_t& state,
                          std::byte& symbol) noexcept {
  const std::uint32_t entry = table.entry[state % kRansScale];
  symbol = static_cast<std::byte>(entry & 0xff);
  state = (entry >> 8 & 0xfff) * (state >> kRansBits) + (entry >> 20);
}

inline void take_word(const std::byte*& words, std::uint32_t& state) noexcept {
  le16 word;
  std::memcpy(&word, words, sizeof(word));
  words += sizeof(word);
  state = state << 16 | word;
}

std::size_t decode(RansRun& run, std::size_t groups) noexcept {
  std::size_t done = 0;
  for (; done < groups && run.end - run.words >= kRansGroupBytes; ++done) {
    for (std::size_t i = 0; i < kRansStates; ++i) {
      decode_symbol(run.table, run.states[i], run.symbols[done * kRansStates + i]);
      if (run.states[i] < kRansLow) take_word(run.words, run.states[i]);
    }
  }
  return done;
}

}  // namespace

std::byte* rans_encode_some(const RansEncodeTable& table, const std::byte* symbols,
                            std::size_t count, std::uint32_t* states, std::byte* words) noexcept {
  while (count-- > 0) words = encode_symbol(table, symbols[count], states[count], words);
  return words;
}

bool rans_decode_some(const RansDecodeTable& table, const std::byte*& words, const std::byte* end,
                      std::size_t count, std::uint32_t* states, std::byte* symbols) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t& state = states[i % kRansStates];
    decode_symbol(table, state, symbols[i]);
    if (state >= kRansLow) continue;
    if (end - words < 2) return false;
    take_word(words, state);
  }
  return true;
}

void count_other_bytes(const ByteSet& known, const std::byte* bytes, std::size_t count,
                       std::uint32_t* counts) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto byte = std::to_integer<std::uint8_t>(bytes[i]);
    if (known.has[byte] == 0) ++counts[byte];
  }
}

const RansKernels kPortableRans = {
    .count_others = count_other_bytes, .encode = encode, .decode = decode};

}  // namespace thalia::codec
