// What a conversion cost: numbers that became infinite, and the largest rounding error.
#pragma once

#include <cstdint>

#include "codec/float/conversion.h"
#include "thalia/bytes.h"
#include "thalia/dtype.h"

namespace thalia::codec {

struct ConversionLoss {
  std::uint64_t overflowed = 0;  ///< finite numbers that became infinite
  double largest_error = 0;      ///< of all others, |number - what became of it|
  friend bool operator==(const ConversionLoss&, const ConversionLoss&) = default;
};

/// Adds to `loss` what convert_elements(from, to, before, after) cost. Reads both once, and nothing
/// where every number of `from` is one of `to`. @throws as convert_elements().
void measure_loss(DType from, DType to, ByteSpan before, ByteSpan after, ConversionLoss& loss,
                  InstructionSet set = fastest_instruction_set());

}  // namespace thalia::codec
