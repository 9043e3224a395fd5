// What the blocks of quantized types consist of: halves, and codes of a few bits.
#pragma once

#include <bit>
#include <cstdint>

#include "codec/float/bits.h"

/// Kernels are compiled for several instruction sets by being part of functions that are.
#define THALIA_GGUF_KERNEL [[gnu::always_inline]] static inline

namespace thalia::formats::gguf {

constexpr float half(const std::uint8_t* in) noexcept {
  const unsigned bits = in[0] | static_cast<unsigned>(in[1]) << 8;
  return std::bit_cast<float>(
      static_cast<std::uint32_t>(codec::widen_bits<codec::kF16Layout, codec::kF32Layout>(bits)));
}

constexpr std::uint32_t little32(const std::uint8_t* in) noexcept {
  return in[0] | std::uint32_t{in[1]} << 8 | std::uint32_t{in[2]} << 16 |
         std::uint32_t{in[3]} << 24;
}

/// The numbers of IQ4_NL and IQ4_XS: denser around zero than at the ends.
inline constexpr float kUneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
/// Twice what codes of E2M1 mean: a sign, two bits of exponent, one of mantissa.
inline constexpr float kTwiceE2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace thalia::formats::gguf
