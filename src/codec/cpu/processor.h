// What the processor can do, asked once, and the sets of instructions for which codecs have
// kernels.
#pragma once

#include <cstdint>

namespace thalia::codec {

struct Processor {
  bool f16c = false;
  bool avx2 = false;
  bool avx512f = false;
  bool avx512_bytes = false;  ///< AVX-512 F, BW, DQ, VL, VBMI, VBMI2 and BITALG
};

/// The processor of this machine. An instruction set counts only if the operating system saves its
/// registers.
const Processor& processor() noexcept;

/// Versions of a codec. All give the same bytes.
enum class VectorSet : std::uint8_t {
  portable,
  avx2,
  avx512,  ///< Processor::avx512_bytes, and AVX2
};
inline constexpr VectorSet kVectorSets[] = {VectorSet::portable, VectorSet::avx2,
                                            VectorSet::avx512};

/// Whether this processor and this build support the set.
bool has_vector_set(VectorSet set) noexcept;
VectorSet fastest_vector_set() noexcept;

}  // namespace thalia::codec
