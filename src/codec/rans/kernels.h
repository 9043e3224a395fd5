// Range asymmetric numeral systems (Duda, arXiv:1311.2540) over bytes: 32 states that take turns,
// frequencies of 12 bits, renormalised by words of 16 bits. docs/format/format.md, "plane_entropy".
// A state x encodes a symbol of frequency f and of cumulated frequency c as (x / f) * 4096 + x % f
// + c; what makes room for that is written first. Decoding goes forward, encoding backward.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/cpu/processor.h"

namespace thalia::codec {

inline constexpr std::size_t kRansStates = 32;
/// The words that a group of one symbol from each state takes at most.
inline constexpr std::ptrdiff_t kRansGroupBytes = 2 * kRansStates;
inline constexpr unsigned kRansBits = 12;
inline constexpr std::uint32_t kRansScale = 1u << kRansBits;
/// A state is at least this, and less than 65,536 times this.
inline constexpr std::uint32_t kRansLow = 1u << 15;

/// Byte values that one register has entries for. Exponents of trained weights take some 30.
inline constexpr std::size_t kRansCompact = 64;

/// Two numbers for each symbol. Dividing by its frequency f is a product with ceil(2^(31 + shift) /
/// f), whose upper half is shifted right by shift - 1: exact for states below 2^31.
struct RansEncodeTable {
  alignas(64) std::uint32_t reciprocal[256];
  /// From bit 0 on 4096 - f, from bit 12 on what is added to the state, from bit 25 on the shift.
  alignas(64) std::uint32_t step[256];
  /// The same for look-ups in registers, of planes with at most kRansCompact byte values: the
  /// number of each of them, and by that number bytes 0 to 3 of its reciprocal and, as 4 to 7, of
  /// its step.
  bool is_compact;
  alignas(64) std::uint8_t number[256];
  alignas(64) std::uint8_t compact[8][kRansCompact];
};

/// For each value of a state's lowest 12 bits: from bit 0 on the symbol, from bit 8 on its
/// frequency, and from bit 20 on the value minus the symbol's cumulated frequency.
struct RansDecodeTable {
  alignas(64) std::uint32_t entry[kRansScale];
  /// The same for look-ups in registers, of planes with at most kRansCompact byte values. The 4096
  /// values are cut into 256 of 16: for each, a bit where a symbol's values begin, and the number
  /// of the symbol that the value before it has, modulo 256. By that number, what a symbol is.
  bool is_compact;
  alignas(64) std::uint16_t begins[256];
  alignas(64) std::uint8_t before[256];
  alignas(64) std::uint16_t frequency[kRansCompact];
  alignas(64) std::uint16_t start[kRansCompact];
  alignas(64) std::uint8_t symbol[kRansCompact];
};

/// Where a decoder is in its words, and where its symbols go.
struct RansRun {
  const RansDecodeTable& table;
  const std::byte* words;
  const std::byte* end;
  std::uint32_t* states;
  std::byte* symbols;
};

/// 0xff for each byte value in the set, 0 for the others.
struct ByteSet {
  alignas(64) std::uint8_t has[256] = {};
};

struct RansKernels {
  /// Counts the bytes that are not in `known`, each in counts[byte]. There should be few of them.
  void (*count_others)(const ByteSet& known, const std::byte* bytes, std::size_t count,
                       std::uint32_t* counts) noexcept;
  /// Encodes groups of 32 symbols, the last group first. The words end where `words` points and
  /// grow downward; 64 bytes below the first word may be touched. Returns where the first word is.
  std::byte* (*encode)(const RansEncodeTable& table, const std::byte* symbols, std::size_t groups,
                       std::uint32_t* states, std::byte* words) noexcept;
  /// Decodes until `groups` are done or fewer than 32 words are left. Returns the number of groups
  /// that are done, and moves the run's words on.
  std::size_t (*decode)(RansRun& run, std::size_t groups) noexcept;
  /// The same for two planes at once, both compact, until either has fewer than 32 words left: each
  /// symbol waits for the one before it, and the two do not wait for each other. Null where a set
  /// has no such kernel.
  std::size_t (*decode_two)(RansRun& first, RansRun& second, std::size_t groups) noexcept = nullptr;
};

/// Encodes the first `count` symbols of a group one at a time; else as RansKernels::encode.
std::byte* rans_encode_some(const RansEncodeTable& table, const std::byte* symbols,
                            std::size_t count, std::uint32_t* states, std::byte* words) noexcept;
/// Decodes any number of symbols, the first of them from state 0. Returns whether there were enough
/// words.
bool rans_decode_some(const RansDecodeTable& table, const std::byte*& words, const std::byte* end,
                      std::size_t count, std::uint32_t* states, std::byte* symbols) noexcept;

/// RansKernels::count_others for the bytes after the last whole vector.
void count_other_bytes(const ByteSet& known, const std::byte* bytes, std::size_t count,
                       std::uint32_t* counts) noexcept;

/// The kernels of a set that has_vector_set() holds for.
const RansKernels& rans_kernels(VectorSet set) noexcept;

extern const RansKernels kPortableRans;
#ifdef __x86_64__
extern const RansKernels kAvx2Rans;
extern const RansKernels kAvx512Rans;
#endif

}  // namespace thalia::codec
