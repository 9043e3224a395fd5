// What a conversion cost: finite numbers that are something else now, and the largest rounding
// error.
#pragma once

#include <cstdint>

#include "codec/float/conversion.h"
#include "thalia/types.h"

namespace thalia::codec {

struct ConversionLoss {
  // What became of finite numbers:
  std::uint64_t infinite = 0;   ///< became infinite
  std::uint64_t nan = 0;        ///< became NaN
  std::uint64_t zeroed = 0;     ///< became zero, and were not
  std::uint64_t subnormal = 0;  ///< became subnormal, and were normal
  double largest_error = 0;     ///< of those that stayed finite, |number - what became of it|
  /// Adds the loss of another conversion.
  ConversionLoss& operator+=(const ConversionLoss& other) noexcept;
  friend bool operator==(const ConversionLoss&, const ConversionLoss&) = default;
};

/// Adds to `loss` what convert_elements(from, to, before, after) cost. Reads both once, and nothing
/// if every number of `from` is one of `to`. @throws as convert_elements().
void measure_loss(DType from, DType to, ByteSpan before, ByteSpan after, ConversionLoss& loss,
                  InstructionSet set = fastest_instruction_set());

}  // namespace thalia::codec
