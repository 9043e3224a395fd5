// Uniform quantization of floating point numbers to codes of 1 to 8 bits. docs/format/format.md,
// "quantized", has the arithmetic.
//
// A run of numbers that share their parameters is a group. Its codes are the numbers of steps of
// `scale` above `minimum`; a restored number is minimum + code × scale, rounded to its type. It
// lies within scale / 2 of what it was, but for that rounding.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/square_sum.h"
#include "thalia/types.h"

namespace thalia::codec {

inline constexpr unsigned kMaxQuantizedBits = 8;

/// Parameters of a group. Each is exactly representable as a parameter_dtype(), so it can be stored
/// as one.
struct UniformScale {
  double minimum = 0;
  double scale = 0;  ///< 0: all restored numbers are `minimum`
  friend bool operator==(const UniformScale&, const UniformScale&) = default;
};

/// f64 for f64, else f32, which holds every number of f32, f16 and bf16.
constexpr DType parameter_dtype(DType dtype) noexcept {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

/// What restoring costs, gathered over any number of groups.
struct QuantizationLoss {
  double largest_error = 0;  ///< |number - restored|
  SquareSum squared_errors{};
  std::uint64_t count = 0;  ///< of numbers
  double rms_error() const noexcept;
  void add(const QuantizationLoss& other) noexcept;
};

/// Parameters with which `bits` bits reach from the least to the greatest number of `group`, in
/// steps that are as small as that allows: levels × scale is at least their difference. Scale is 0
/// if all are equal; both are 0 of no numbers. nullopt if a number is NaN or infinite, or
/// they lie farther apart than a parameter can say: such a group has to be stored as it is.
/// @throws UsageError (dtype_mismatch) for other types than f32, f64, f16 and bf16, (bad_argument)
/// for other than 1 to 8 bits, (size_mismatch) unless the bytes are whole elements. Any thread may
/// call this and the next three; spans need no alignment.
std::optional<UniformScale> uniform_scale(DType dtype, ByteSpan group, unsigned bits);

/// One code a byte, each less than 2^bits: the nearest step, halves away from zero. A number that
/// is not within the range of the parameters gets the code nearest to it; NaN gets 0.
/// @throws as uniform_scale(); UsageError (size_mismatch) unless there is a code for each element.
void quantize(DType dtype, ByteSpan group, unsigned bits, UniformScale scale,
              std::span<std::uint8_t> codes);

/// The numbers that codes stand for. Every code and any parameters are taken; a result beyond the
/// largest finite number of the type, on either side, is that number. @throws as quantize().
void dequantize(DType dtype, std::span<const std::uint8_t> codes, UniformScale scale,
                MutableByteSpan group);

/// Adds to `loss` what became of `before`. Both have the type. @throws as uniform_scale();
/// UsageError (size_mismatch) unless both are as long.
void measure_quantization(DType dtype, ByteSpan before, ByteSpan after, QuantizationLoss& loss);

}  // namespace thalia::codec
