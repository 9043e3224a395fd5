#include "cli/tensor/element.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <string_view>
#include <type_traits>

#include "thalia/error.h"

namespace thalia::cli {
namespace {

// What the bit patterns with an all-ones exponent mean, the types differ in nothing else.
enum class Special {
  ieee,      ///< infinities and NaNs
  one_nan,   ///< all ones below the sign is NaN, the rest are numbers
  numbers,   ///< none: every pattern is a number
  minus_nan  ///< none, but the pattern of minus zero is NaN
};

struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Special special;
};

float small_float(std::uint32_t bits, const SmallFloat& type) {
  const std::uint32_t sign_bit = 1u << (type.exponent_bits + type.mantissa_bits);
  const std::uint32_t mantissa_mask = (1u << type.mantissa_bits) - 1;
  const std::uint32_t exponent_mask = (1u << type.exponent_bits) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask;
  const std::uint32_t exponent = (bits >> type.mantissa_bits) & exponent_mask;
  const bool negative = bits & sign_bit;
  const bool top = exponent == exponent_mask;

  const float nan = std::numeric_limits<float>::quiet_NaN();
  if (type.special == Special::ieee && top) {
    if (mantissa != 0) return nan;
    return negative ? -std::numeric_limits<float>::infinity()
                    : std::numeric_limits<float>::infinity();
  }
  if (type.special == Special::one_nan && top && mantissa == mantissa_mask) return nan;
  if (type.special == Special::minus_nan && bits == sign_bit) return nan;

  const float magnitude =
      exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - type.bias - type.mantissa_bits)
                    : std::ldexp(static_cast<float>(mantissa | (1u << type.mantissa_bits)),
                                 static_cast<int>(exponent) - type.bias - type.mantissa_bits);
  return negative ? -magnitude : magnitude;
}

template <typename T>
T load(ByteSpan bytes, std::uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// `count` bits (up to 8) from bit `position` of the stream.
std::uint32_t load_bits(ByteSpan bytes, std::uint64_t position, unsigned count) {
  const std::uint64_t byte = position / 8;
  std::uint32_t window = std::to_integer<std::uint32_t>(bytes[byte]);
  if (byte + 1 < bytes.size()) window |= std::to_integer<std::uint32_t>(bytes[byte + 1]) << 8;
  return (window >> (position % 8)) & ((1u << count) - 1);
}

std::int64_t sign_extend(std::uint32_t bits, unsigned count) {
  const std::int64_t value = bits;
  return bits >> (count - 1) ? value - (std::int64_t{1} << count) : value;
}

template <typename T>
void append_float(std::string& out, T value) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  const std::size_t start = out.size();
  fmt::format_to(std::back_inserter(out), "{}", value);
  if (std::isfinite(value) && out.find_first_of(".e", start) == std::string::npos) out += ".0";
}

template <typename T>
void append_json_float(std::string& out, T value) {
  if (std::isnan(value)) {
    out += "\"NaN\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    append_float(out, value);
  }
}

}  // namespace

Element decode_element(DType dtype, ByteSpan bytes, std::uint64_t index) {
  const auto bits = [&](unsigned count) { return load_bits(bytes, index * count, count); };
  const auto byte = [&] { return load<std::uint8_t>(bytes, index); };
  const auto integer = [](std::int64_t value) { return Element(value); };
  const auto natural = [](std::uint64_t value) { return Element(value); };
  switch (dtype) {
    case DType::f32:
      return load<float>(bytes, index);
    case DType::f64:
      return load<double>(bytes, index);
    case DType::f16:
      return small_float(load<std::uint16_t>(bytes, index), {5, 10, 15, Special::ieee});
    case DType::bf16:
      return std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(bytes, index)} << 16);
    case DType::f8_e4m3:
      return small_float(byte(), {4, 3, 7, Special::one_nan});
    case DType::f8_e5m2:
      return small_float(byte(), {5, 2, 15, Special::ieee});
    case DType::f8_e8m0:
      return byte() == 0xFF ? std::numeric_limits<float>::quiet_NaN()
                            : std::ldexp(1.0f, byte() - 127);
    case DType::f8_e4m3fnuz:
      return small_float(byte(), {4, 3, 8, Special::minus_nan});
    case DType::f8_e5m2fnuz:
      return small_float(byte(), {5, 2, 16, Special::minus_nan});
    case DType::f6_e2m3:
      return small_float(bits(6), {2, 3, 1, Special::numbers});
    case DType::f6_e3m2:
      return small_float(bits(6), {3, 2, 3, Special::numbers});
    case DType::f4_e2m1:
      return small_float(bits(4), {2, 1, 1, Special::numbers});
    case DType::i8:
      return integer(load<std::int8_t>(bytes, index));
    case DType::i16:
      return integer(load<std::int16_t>(bytes, index));
    case DType::i32:
      return integer(load<std::int32_t>(bytes, index));
    case DType::i64:
      return integer(load<std::int64_t>(bytes, index));
    case DType::u8:
      return natural(byte());
    case DType::u16:
      return natural(load<std::uint16_t>(bytes, index));
    case DType::u32:
      return natural(load<std::uint32_t>(bytes, index));
    case DType::u64:
      return natural(load<std::uint64_t>(bytes, index));
    case DType::boolean:
      return byte() != 0;
    case DType::i4:
      return integer(sign_extend(bits(4), 4));
    case DType::u4:
      return natural(bits(4));
    case DType::i2:
    case DType::ternary:
      return integer(sign_extend(bits(2), 2));
    case DType::u2:
      return natural(bits(2));
    case DType::binary:
      return integer(bits(1) != 0 ? 1 : -1);
    case DType::c64:
      return load<std::complex<float>>(bytes, index);
    case DType::c128:
      return load<std::complex<double>>(bytes, index);
  }
  throw UnsupportedError(ErrorCode::unsupported_feature, "unknown dtype");
}

void append_text(std::string& out, const Element& element) {
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          out += value ? "true" : "false";
        } else if constexpr (std::is_integral_v<T>) {
          fmt::format_to(std::back_inserter(out), "{}", value);
        } else if constexpr (std::is_floating_point_v<T>) {
          append_float(out, value);
        } else {
          append_float(out, value.real());
          if (!std::signbit(value.imag())) out += '+';
          append_float(out, value.imag());
          out += 'j';
        }
      },
      element);
}

void append_json(std::string& out, const Element& element) {
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_integral_v<T>) {
          append_text(out, element);
        } else if constexpr (std::is_floating_point_v<T>) {
          append_json_float(out, value);
        } else {
          out += '[';
          append_json_float(out, value.real());
          out += ',';
          append_json_float(out, value.imag());
          out += ']';
        }
      },
      element);
}

}  // namespace thalia::cli
