// One floating point number to another type, on its bits and with integer arithmetic alone: the
// rules that the vector kernels keep. A number is rounded once, to nearest, ties to even. What is
// too large becomes an infinity; subnormals are kept; a NaN stays a quiet NaN with its sign and the
// top of its payload.
#pragma once

#include <bit>
#include <cstdint>

namespace thalia::codec {

struct FloatLayout {
  unsigned exponent_bits;
  unsigned mantissa_bits;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint64_t infinity() const {
    return ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  }
  constexpr std::uint64_t quiet() const { return std::uint64_t{1} << (mantissa_bits - 1); }
  constexpr unsigned sign_shift() const { return exponent_bits + mantissa_bits; }
};

inline constexpr FloatLayout kF16Layout{5, 10};
inline constexpr FloatLayout kBF16Layout{8, 7};
inline constexpr FloatLayout kF32Layout{8, 23};
inline constexpr FloatLayout kF64Layout{11, 52};

/// To a type with fewer bits of mantissa, and no more of exponent.
template <FloatLayout kFrom, FloatLayout kTo>
constexpr std::uint64_t narrow_bits(std::uint64_t bits) {
  constexpr std::uint64_t kOne = 1;
  constexpr std::uint64_t kImplicit = kOne << kFrom.mantissa_bits;
  const std::uint64_t sign = (bits >> kFrom.sign_shift()) << kTo.sign_shift();
  const std::uint64_t magnitude = bits & ((kOne << kFrom.sign_shift()) - 1);
  unsigned shift = kFrom.mantissa_bits - kTo.mantissa_bits;
  if (magnitude > kFrom.infinity()) {
    return sign | kTo.infinity() | kTo.quiet() | ((magnitude & (kImplicit - 1)) >> shift);
  }
  if (magnitude == kFrom.infinity()) return sign | kTo.infinity();

  const bool subnormal = magnitude < kImplicit;
  const std::uint64_t significand =
      subnormal ? magnitude : ((magnitude & (kImplicit - 1)) | kImplicit);
  int exponent = subnormal ? 1 : static_cast<int>(magnitude >> kFrom.mantissa_bits);
  exponent += kTo.bias() - kFrom.bias();
  if (exponent < 1) {
    if (1 - exponent > static_cast<int>(kTo.mantissa_bits) + 1) return sign;
    shift += static_cast<unsigned>(1 - exponent);
    exponent = 1;
  }
  const std::uint64_t rest = significand & ((kOne << shift) - 1);
  const std::uint64_t half = kOne << (shift - 1);
  std::uint64_t rounded = significand >> shift;
  rounded += static_cast<std::uint64_t>(rest > half || (rest == half && (rounded & 1) != 0));
  // The significand's leading one, if it has one, adds the last 1 to the exponent.
  rounded += static_cast<std::uint64_t>(exponent - 1) << kTo.mantissa_bits;
  return sign | (rounded < kTo.infinity() ? rounded : kTo.infinity());
}

/// To a type that holds every value of the first.
template <FloatLayout kFrom, FloatLayout kTo>
constexpr std::uint64_t widen_bits(std::uint64_t bits) {
  constexpr std::uint64_t kOne = 1;
  constexpr unsigned kShift = kTo.mantissa_bits - kFrom.mantissa_bits;
  const std::uint64_t sign = (bits >> kFrom.sign_shift()) << kTo.sign_shift();
  const std::uint64_t magnitude = bits & ((kOne << kFrom.sign_shift()) - 1);
  std::uint64_t mantissa = magnitude & ((kOne << kFrom.mantissa_bits) - 1);
  if (magnitude >= kFrom.infinity()) {
    return sign | kTo.infinity() | (mantissa == 0 ? 0 : kTo.quiet() | (mantissa << kShift));
  }
  if constexpr (kFrom.exponent_bits == kTo.exponent_bits) {
    return sign | (magnitude << kShift);
  } else {
    if (magnitude == 0) return sign;
    int exponent = static_cast<int>(magnitude >> kFrom.mantissa_bits);
    if (exponent == 0) {
      const auto missing =
          static_cast<int>(kFrom.mantissa_bits) + 1 - static_cast<int>(std::bit_width(mantissa));
      mantissa = (mantissa << missing) & ((kOne << kFrom.mantissa_bits) - 1);
      exponent = 1 - missing;
    }
    exponent += kTo.bias() - kFrom.bias();
    return sign | (static_cast<std::uint64_t>(exponent) << kTo.mantissa_bits) |
           (mantissa << kShift);
  }
}

}  // namespace thalia::codec
