// What an element of each dtype is: one row for each, from which follows whatever depends on a
// dtype. docs/format/format.md, "Element types" and "Small floats".
#pragma once

#include <cstdint>
#include <string_view>

#include "thalia/types.h"

namespace thalia {

enum class DTypeKind : std::uint8_t {
  floating,
  signed_integer,  ///< two's complement; of one bit -1 or 1
  unsigned_integer,
  boolean,
  complex  ///< two floating-point numbers
};

/// What the bit patterns with an exponent of all ones mean.
enum class FloatSpecials : std::uint8_t {
  ieee,      ///< infinities and NaNs
  one_nan,   ///< all ones below the sign is NaN
  numbers,   ///< nothing special
  minus_nan  ///< nothing special, but the pattern of minus zero is NaN
};

/// The fields of a floating-point number, from the highest bit down: sign, exponent, mantissa.
struct FloatFields {
  std::uint8_t exponent_bits = 0;
  std::uint8_t mantissa_bits = 0;  ///< 0: a power of two without a sign; all ones is NaN
  std::int16_t bias = 0;
  FloatSpecials specials = FloatSpecials::ieee;
};

struct DTypeFacts {
  std::string_view name;
  std::uint8_t bits;
  std::uint8_t alignment;  ///< bytes
  DTypeKind kind;
  FloatFields fields{};  ///< of floating and complex ones
};

const DTypeFacts& dtype_facts(DType dtype) noexcept;

/// The least number that has all its bits; 0 of a dtype without subnormal numbers.
double least_normal(DType dtype) noexcept;

}  // namespace thalia
