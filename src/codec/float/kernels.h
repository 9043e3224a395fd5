// Conversions of whole arrays, one table of functions for each set of instructions. All give the
// same bytes as bits.h does one number at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thalia::codec {

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
