// What step_delta knows of an element: its bytes, and which bits its step depends on.
#pragma once

#include <cstdint>
#include <optional>

#include "thalia/types.h"

namespace thalia::codec {

/// Elements of one or two bytes. Floats are sign, exponent, mantissa from the highest bit down.
struct StepKind {
  std::uint8_t bytes = 1;
  bool is_float = false;
  std::uint8_t exponent_shift = 0;  ///< of floats: the bits of the mantissa
  std::uint8_t exponent_mask = 0;   ///< of floats: the greatest exponent field

  unsigned bits() const noexcept { return 8u * bytes; }

  friend bool operator==(const StepKind&, const StepKind&) = default;
};

/// Nothing for element types that step_delta does not have. f8_e8m0 counts as an integer: it has
/// neither a sign nor a mantissa.
std::optional<StepKind> step_kind(DType dtype) noexcept;

}  // namespace thalia::codec
