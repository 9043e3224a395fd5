// Elements of loom's small floating-point types. They are not those of IEEE 754 or OCP: encoders
// cut the mantissa off and give zero for what would be subnormal, and the decoders read a zero
// exponent with a mantissa in ways of their own. All of this is in files, so it is kept.
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "thalia/formats/loom_network.h"

namespace thalia {
namespace formats::loom {
namespace {

constexpr unsigned kFloatMantissaBits = 23;
constexpr std::uint32_t kFloatMantissa = (1u << kFloatMantissaBits) - 1;
constexpr int kFloatBias = 127;

// A float of `exponent_bits` and `mantissa_bits`. `saturated`: exponent and mantissa of what is too
// large, of infinities and of NaN.
template <unsigned exponent_bits, unsigned mantissa_bits>
std::uint32_t truncated(float value, std::uint32_t saturated) noexcept {
  constexpr int kBias = (1 << (exponent_bits - 1)) - 1;
  constexpr int kTop = (1 << exponent_bits) - 1;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 31) << (exponent_bits + mantissa_bits);
  const int exponent = static_cast<int>((bits >> kFloatMantissaBits) & 0xff) - kFloatBias + kBias;
  if ((bits & 0x7fffffff) == 0 || exponent <= 0) return sign;
  if (exponent >= kTop) return sign | saturated;
  return sign | (static_cast<std::uint32_t>(exponent) << mantissa_bits) |
         ((bits & kFloatMantissa) >> (kFloatMantissaBits - mantissa_bits));
}

float assembled(std::uint32_t sign, int exponent, std::uint32_t mantissa,
                unsigned mantissa_bits) noexcept {
  return std::bit_cast<float>((sign << 31) |
                              (static_cast<std::uint32_t>(exponent + kFloatBias) << 23) |
                              (mantissa << (kFloatMantissaBits - mantissa_bits)));
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr std::array<float, 16> kFp4{0,     .75f,  1,  1.5f,  2,  3,  kInfinity,  kNaN,
                                     -0.0f, -.75f, -1, -1.5f, -2, -3, -kInfinity, kNaN};

}  // namespace
}  // namespace formats::loom

namespace loom = formats::loom;

std::uint8_t loom_fp8e4m3_from_float(float value) noexcept {
  return static_cast<std::uint8_t>(loom::truncated<4, 3>(value, 0x7f));
}

std::uint8_t loom_fp8e5m2_from_float(float value) noexcept {
  return static_cast<std::uint8_t>(loom::truncated<5, 2>(value, 0x7c));
}

std::uint16_t loom_float16_from_float(float value) noexcept {
  return static_cast<std::uint16_t>(loom::truncated<5, 10>(value, 0x7c00));
}

std::uint16_t loom_bfloat16_from_float(float value) noexcept {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

// The nearest finite code; the first of two that are as near. So code 8, -0, is never given, and
// NaN and infinities, which are near to nothing, give 0.
std::uint8_t loom_fp4_from_float(float value) noexcept {
  std::uint8_t best = 0;
  float least = std::numeric_limits<float>::infinity();
  for (std::size_t code = 0; code < loom::kFp4.size(); ++code) {
    if (!std::isfinite(loom::kFp4[code])) continue;
    const float distance = std::abs(value - loom::kFp4[code]);
    if (distance < least) {
      least = distance;
      best = static_cast<std::uint8_t>(code);
    }
  }
  return best;
}

float loom_fp8e4m3_to_float(std::uint8_t code) noexcept {
  const std::uint32_t sign = code >> 7, mantissa = code & 7u;
  const int exponent = (code >> 3) & 15;
  if (exponent != 0) return loom::assembled(sign, exponent - 7, mantissa, 3);
  if (mantissa == 0) return sign != 0 ? -0.0f : 0.0f;
  return loom::assembled(sign, -10, mantissa, 3);
}

float loom_fp8e5m2_to_float(std::uint8_t code) noexcept {
  const std::uint32_t sign = code >> 7, mantissa = code & 3u;
  const int exponent = (code >> 2) & 31;
  // The original loses the sign of an infinity.
  if (exponent == 31) return mantissa == 0 ? loom::kInfinity : loom::kNaN;
  if (exponent == 0 && mantissa == 0) return sign != 0 ? -0.0f : 0.0f;
  return loom::assembled(sign, exponent - 15, mantissa, 2);
}

float loom_float16_to_float(std::uint16_t code) noexcept {
  const std::uint32_t sign = code >> 15, mantissa = code & 0x3ffu;
  const int exponent = (code >> 10) & 31;
  if (exponent == 31) return std::bit_cast<float>((sign << 31) | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return loom::assembled(sign, exponent - 15, mantissa, 10);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

float loom_bfloat16_to_float(std::uint16_t code) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
}

float loom_fp4_to_float(std::uint8_t code) noexcept {
  return loom::kFp4[code & 15];
}

}  // namespace thalia
