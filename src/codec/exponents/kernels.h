// Bytes to bit planes and back, 64 bytes, a group, at a time: bit j of byte i of a group is bit i
// of the group's 64-bit word j, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/cpu/processor.h"
#include "codec/exponents/code.h"

namespace thalia::codec {

inline constexpr std::size_t kGroup = 64;
/// Bytes behind the last escape that pack() may write to.
inline constexpr std::size_t kEscapeSlack = 64;

/// What pack() looks up.
struct ExponentLookup {
  explicit ExponentLookup(const ExponentCode& chosen);
  ExponentCode code;
  alignas(64) std::uint8_t code_of[256];  ///< of each byte, whatever its low bits
};

/// Arrays need no alignment.
struct ExponentKernels {
  /// Codes of `groups` * 64 bytes as bit planes, and the symbols without code, one behind the
  /// other. Returns where the next escape would stand.
  std::byte* (*pack)(const ExponentLookup& lookup, const std::byte* bytes, std::size_t groups,
                     std::byte* codes, std::byte* escapes) noexcept;
  /// The way back, without low bits. Reads no escape at or behind `end`: returns nullptr where they
  /// run out.
  const std::byte* (*unpack)(const ExponentCode& code, const std::byte* codes, std::size_t groups,
                             const std::byte* escapes, const std::byte* end,
                             std::byte* bytes) noexcept;
  /// The lowest `bits` bits of each byte as bit planes.
  void (*pack_low)(unsigned bits, const std::byte* bytes, std::size_t groups,
                   std::byte* planes) noexcept;
  /// Puts them back into bytes in which they are zero.
  void (*add_low)(unsigned bits, const std::byte* planes, std::size_t groups,
                  std::byte* bytes) noexcept;
};

/// Of a set that there is.
const ExponentKernels& exponent_kernels(VectorSet set) noexcept;

extern const ExponentKernels kPortableExponents;
#ifdef __x86_64__
extern const ExponentKernels kAvx2Exponents;
extern const ExponentKernels kAvx512Exponents;
#endif

}  // namespace thalia::codec
