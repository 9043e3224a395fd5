// Bytes to bit planes and back, in groups of 64 bytes: bit j of byte i of a group becomes bit i of
// the group's little-endian 64-bit word j.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/cpu/processor.h"
#include "codec/exponents/code.h"

namespace thalia::codec {

inline constexpr std::size_t kGroup = 64;
/// pack() may write to this many bytes after the last escape.
inline constexpr std::size_t kEscapeSlack = 64;

/// The table that pack() looks codes up in.
struct ExponentLookup {
  explicit ExponentLookup(const ExponentCode& chosen);
  ExponentCode code;
  alignas(64) std::uint8_t code_of[256];  ///< of each byte, whatever its low bits
};

/// Arrays need no alignment.
struct ExponentKernels {
  /// Writes the codes of `groups` * 64 bytes as bit planes, and the symbols without a code one
  /// after the other. Returns where the next escape would go.
  std::byte* (*pack)(const ExponentLookup& lookup, const std::byte* bytes, std::size_t groups,
                     std::byte* codes, std::byte* escapes) noexcept;
  /// The inverse of pack(); low bits stay zero. Reads no escape at or after `end`, and returns
  /// nullptr if the escapes run out.
  const std::byte* (*unpack)(const ExponentCode& code, const std::byte* codes, std::size_t groups,
                             const std::byte* escapes, const std::byte* end,
                             std::byte* bytes) noexcept;
  /// Writes the lowest `bits` bits of each byte as bit planes.
  void (*pack_low)(unsigned bits, const std::byte* bytes, std::size_t groups,
                   std::byte* planes) noexcept;
  /// Puts the low bits back into bytes in which they are zero.
  void (*add_low)(unsigned bits, const std::byte* planes, std::size_t groups,
                  std::byte* bytes) noexcept;
};

/// The kernels of a set that has_vector_set() holds for.
const ExponentKernels& exponent_kernels(VectorSet set) noexcept;

extern const ExponentKernels kPortableExponents;
#ifdef __x86_64__
extern const ExponentKernels kAvx2Exponents;
extern const ExponentKernels kAvx512Exponents;
#endif

}  // namespace thalia::codec
