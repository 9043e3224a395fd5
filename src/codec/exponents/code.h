// The code of packed_exponents: which symbols have a code of their own, and how many bits it takes.
// docs/format/format.md, "packed_exponents".
#pragma once

#include <array>
#include <cstdint>

#include "codec/planes/byte_counts.h"

namespace thalia::codec {

/// A symbol is the highest bits of a byte, with the others set to zero. Code i stands for
/// symbols[i]. The greatest code is the escape: its symbol is stored among the escapes.
struct ExponentCode {
  static constexpr unsigned kMaxCodeBits = 4;

  unsigned symbol_bits = 8;  ///< 1 to 8
  unsigned code_bits = 3;    ///< 1 to kMaxCodeBits
  std::array<std::uint8_t, 1u << kMaxCodeBits> symbols{};

  unsigned escape() const noexcept { return (1u << code_bits) - 1; }
  /// Bits of the byte below the symbol.
  unsigned low_bits() const noexcept { return 8 - symbol_bits; }
  std::uint8_t symbol_mask() const noexcept {
    return static_cast<std::uint8_t>(0xffu << low_bits());
  }
  /// The bits that `count` bytes take if `escapes` of them have no code.
  std::uint64_t bits(std::uint64_t count, std::uint64_t escapes) const noexcept {
    return count * (code_bits + low_bits()) + escapes * 8;
  }
};

/// The code in which bytes with these counts take the fewest bits, no two codes for one symbol. It
/// depends on the counts alone. @param symbol_bits 4 to 8.
ExponentCode choose_exponent_code(const ByteCounts& counts, unsigned symbol_bits);

}  // namespace thalia::codec
