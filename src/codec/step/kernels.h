// What step_delta does for each element, and its asymmetric numeral systems (Duda,
// arXiv:1311.2540): up to 32 states that take turns, frequencies of 15 bits, renormalised by words
// of 16 bits. docs/format/deltas.md. A state x encodes a symbol of frequency f and of
// cumulated frequency c as (x / f) * 32768 + x % f + c; what makes room for that is written first.
// Decoding goes forward, encoding backward.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codec/cpu/processor.h"
#include "codec/step/step_kind.h"

namespace thalia::codec {

inline constexpr std::size_t kStepClasses = 32;
/// No change; 1, 2, 3, [4, 7], [8, 15], [16, 31], [32, 63], up and down; any other.
inline constexpr std::size_t kStepSymbols = 16;
/// The same without the sign. Up and down have equal frequencies.
inline constexpr std::size_t kStepMagnitudes = 9;
inline constexpr std::size_t kStepEscape = kStepMagnitudes - 1;
inline constexpr unsigned kStepScaleBits = 15;
inline constexpr std::uint32_t kStepScale = 1u << kStepScaleBits;
/// A state is at least this.
inline constexpr std::uint32_t kStepLow = 1u << 16;
inline constexpr std::size_t kStepMostLanes = 32;
inline constexpr std::size_t kStepExponents = 256;

/// Extra bits of a magnitude; the escape's are as many as the element has.
inline constexpr std::array<std::uint8_t, kStepMagnitudes> kStepExtraBits{0, 0, 0, 0, 2, 3, 4, 5};
/// The least distance of a magnitude.
inline constexpr std::array<std::uint8_t, kStepMagnitudes> kStepLeast{0, 1, 2, 3, 4, 8, 16, 32, 64};

/// Frequencies of all classes, so that one register has a magnitude's. In the order of the symbols,
/// up comes before down.
struct StepTables {
  alignas(64) std::uint16_t frequency[kStepMagnitudes][kStepClasses];
  alignas(64) std::uint16_t start[kStepMagnitudes][kStepClasses];  ///< of the first of the two
};

/// How the elements of a tensor are coded.
struct StepModel {
  StepKind kind;
  std::uint8_t first_class;
  std::uint8_t lanes;
  StepTables tables;
};

/// Extra bits as they are made: each byte from bit 0 up, and ascending.
struct StepBitSink {
  std::byte* at;
  std::uint64_t pending = 0;
  unsigned count = 0;  ///< of pending bits, below 8 between calls
};

/// How often each symbol occurs at each exponent field of the base; at 0 of integers.
using StepExponentCounts = std::array<std::array<std::uint32_t, kStepSymbols>, kStepExponents>;

/// Where a decoder of a chunk is. `begin` to `end` are the chunk's bytes; extra bits lie from the
/// end down, words from the states up. That they do not overlap is found out at the end.
struct StepRun {
  const StepModel& model;
  const std::byte* begin;
  const std::byte* end;
  const std::byte* words;
  std::uint64_t bits;  ///< extra bits that are read
  std::uint32_t* states;
};

struct StepKernels {
  /// Adds to `counts`. At most 2^32 - 1 elements in all.
  void (*count)(const StepKind& kind, const std::byte* base, const std::byte* next,
                std::size_t count, StepExponentCounts& counts) noexcept;
  /// Appends the extra bits of all elements, in their order.
  void (*extras)(const StepKind& kind, const std::byte* base, const std::byte* next,
                 std::size_t count, StepBitSink& sink) noexcept;
  /// Encodes elements, the last first; `count` is a multiple of the lanes. The words end where
  /// `words` points and grow downward; 64 bytes below the first word may be touched. Returns where
  /// the first word is.
  std::byte* (*encode)(const StepModel& model, const std::byte* base, const std::byte* next,
                       std::size_t count, std::uint32_t* states, std::byte* words) noexcept;
  /// Decodes up to `count` elements, a multiple of the lanes, and returns how many: it ends where
  /// it could read beyond the chunk. `out` may be `base`.
  std::size_t (*decode)(StepRun& run, const std::byte* base, std::byte* out,
                        std::size_t count) noexcept;
};

/// The same for any number of elements, one at a time, the first in lane 0. Decoding returns
/// whether there were enough bytes.
void step_count_some(const StepKind& kind, const std::byte* base, const std::byte* next,
                     std::size_t count, StepExponentCounts& counts) noexcept;
void step_extras_some(const StepKind& kind, const std::byte* base, const std::byte* next,
                      std::size_t count, StepBitSink& sink) noexcept;
std::byte* step_encode_some(const StepModel& model, const std::byte* base, const std::byte* next,
                            std::size_t count, std::uint32_t* states, std::byte* words) noexcept;
bool step_decode_some(StepRun& run, const std::byte* base, std::byte* out,
                      std::size_t count) noexcept;

/// The kernels of a set that has_vector_set() holds for.
const StepKernels& step_kernels(VectorSet set) noexcept;

extern const StepKernels kPortableStep;
#ifdef __x86_64__
extern const StepKernels kAvx512Step;
#endif

}  // namespace thalia::codec
