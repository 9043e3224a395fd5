// Conversions of whole arrays and sums over them, one table of functions for each set of
// instructions. Conversions give the same bytes as bits.h does one number at a time, and sums the
// same bits in every set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thalia::codec {

/// Sums are kept in so many lanes.
inline constexpr std::size_t kSumLanes = 8;

/// The sum and range of numbers. NaN is not a number: it counts for the sum alone.
struct NumberRange {
  double sum = 0;
  double min = 0;           ///< infinity if there are none
  double max = 0;           ///< minus infinity
  std::uint64_t below = 0;  ///< of a magnitude below the limit
};

/// Arrays need no alignment and must not overlap. MXCSR must be in its standard state: round to
/// nearest, keep subnormals.
struct FloatKernels {
  using Convert = void (*)(const std::byte* from, std::byte* to, std::size_t count) noexcept;
  Convert f32_to_f16;
  Convert f32_to_bf16;
  Convert f32_to_f64;
  Convert f64_to_f16;
  Convert f64_to_bf16;
  Convert f64_to_f32;
  Convert f16_to_f32;
  Convert bf16_to_f32;
  /// `count` is a multiple of kSumLanes, as for the next one.
  void (*range)(const double* numbers, std::size_t count, double limit, NumberRange& out) noexcept;
  /// The sum of the squared distances from `mean`.
  double (*squares)(const double* numbers, std::size_t count, double mean) noexcept;
};

enum class InstructionSet {
  portable,
  f16c,    ///< with AVX2
  avx512,  ///< AVX-512F, with the above
};
inline constexpr InstructionSet kInstructionSets[] = {InstructionSet::portable,
                                                      InstructionSet::f16c, InstructionSet::avx512};

/// Whether this processor and this build support the set.
bool has_instruction_set(InstructionSet set) noexcept;
/// The kernels of a set that has_instruction_set() holds for.
const FloatKernels& float_kernels(InstructionSet set) noexcept;

extern const FloatKernels kPortableKernels;
#ifdef __x86_64__
extern const FloatKernels kF16cKernels;
extern const FloatKernels kAvx512Kernels;
#endif

}  // namespace thalia::codec
