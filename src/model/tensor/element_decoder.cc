// The meaning of every bit pattern of every element type, in one place. Types of up to eight bits
// go through tables of 256 values, computed once from the field widths below and shared by all
// threads; wider types are loaded and converted. Loads go through memcpy, so that bytes need no
// alignment.

#include "model/tensor/element_decoder.h"

#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace thalia::model {
namespace {

// What the bit patterns with an exponent of all ones mean. The small float types differ in this, in
// their field widths and in their bias. docs/format/format.md, "Small floats".
enum class Special {
  ieee,      // infinities and NaNs
  one_nan,   // all ones below the sign is NaN
  numbers,   // none
  minus_nan  // none, but the pattern of minus zero is NaN
};

struct SmallFloat {
  unsigned exponent_bits;
  unsigned mantissa_bits;
  int bias;
  Special special;
};

double small_float(std::uint32_t bits, const SmallFloat& type) {
  const std::uint32_t sign_bit = 1u << (type.exponent_bits + type.mantissa_bits);
  const std::uint32_t mantissa_mask = (1u << type.mantissa_bits) - 1;
  const std::uint32_t exponent_mask = (1u << type.exponent_bits) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask;
  const std::uint32_t exponent = (bits >> type.mantissa_bits) & exponent_mask;
  const double sign = bits & sign_bit ? -1 : 1;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (exponent == exponent_mask) {
    if (type.special == Special::ieee)
      return mantissa != 0 ? kNan : sign * std::numeric_limits<double>::infinity();
    if (type.special == Special::one_nan && mantissa == mantissa_mask) return kNan;
  }
  if (type.special == Special::minus_nan && bits == sign_bit) return kNan;
  // Exponent 0 holds subnormal numbers: the scale of exponent 1, without the implicit leading one.
  const int scale = static_cast<int>(exponent == 0 ? 1 : exponent) - type.bias -
                    static_cast<int>(type.mantissa_bits);
  return sign * std::ldexp(exponent == 0 ? mantissa : mantissa | (1u << type.mantissa_bits), scale);
}

constexpr SmallFloat kHalf{5, 10, 15, Special::ieee};

// The value of a code of a type of up to eight bits.
double small_value(DType dtype, std::uint32_t code) {
  const auto sign_extended = [&](unsigned bits) {
    return code >> (bits - 1) ? static_cast<double>(code) - (1u << bits) : code;
  };
  switch (dtype) {
    case DType::f8_e4m3:
      return small_float(code, {4, 3, 7, Special::one_nan});
    case DType::f8_e5m2:
      return small_float(code, {5, 2, 15, Special::ieee});
    case DType::f8_e8m0:
      return code == 0xFF ? std::numeric_limits<double>::quiet_NaN()
                          : std::ldexp(1.0, static_cast<int>(code) - 127);
    case DType::f8_e4m3fnuz:
      return small_float(code, {4, 3, 8, Special::minus_nan});
    case DType::f8_e5m2fnuz:
      return small_float(code, {5, 2, 16, Special::minus_nan});
    case DType::f6_e2m3:
      return small_float(code, {2, 3, 1, Special::numbers});
    case DType::f6_e3m2:
      return small_float(code, {3, 2, 3, Special::numbers});
    case DType::f4_e2m1:
      return small_float(code, {2, 1, 1, Special::numbers});
    case DType::i8:
      return sign_extended(8);
    case DType::i4:
      return sign_extended(4);
    case DType::i2:
    case DType::ternary:
      return sign_extended(2);
    case DType::binary:
      return code != 0 ? 1 : -1;
    case DType::boolean:
      return code != 0;
    case DType::u8:
    case DType::u4:
    case DType::u2:
      return code;
    case DType::f32:
    case DType::f16:
    case DType::f64:
    case DType::bf16:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u16:
    case DType::u32:
    case DType::u64:
    case DType::c64:
    case DType::c128:
      break;
  }
  assert(false);
  return 0;
}

// 2 KiB for each type: the table of the type in use stays in the first cache.
using Values = std::array<double, 256>;

// Filled at the first use; the language makes that safe among threads.
const Values& small_values(DType dtype) {
  static const auto tables = [] {
    std::array<Values, kDTypeCount> all{};
    for (std::uint8_t d = 0; d < kDTypeCount; ++d) {
      const unsigned bits = dtype_bits(DType{d});
      for (std::uint32_t code = 0; bits <= 8 && code < 1u << bits; ++code)
        all[d][code] = small_value(DType{d}, code);
    }
    return all;
  }();
  return tables[static_cast<std::uint8_t>(dtype)];
}

template <typename Out>
void decode_small(DType dtype, ByteSpan bytes, std::uint64_t first, std::span<Out> out) {
  const Values& values = small_values(dtype);
  const unsigned bits = dtype_bits(dtype);
  if (bits == 8) {
    const std::byte* const from = bytes.data() + first;
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = values[std::to_integer<unsigned>(from[i])];
    return;
  }
  std::uint64_t at = first * bits;
  for (Out& value : out) {
    std::uint32_t window = std::to_integer<std::uint32_t>(bytes[at / 8]);
    // At most 7 + 6 bits from here: two bytes hold any element, and the last byte has no next one.
    if (at / 8 + 1 < bytes.size()) window |= std::to_integer<std::uint32_t>(bytes[at / 8 + 1]) << 8;
    value = values[(window >> at % 8) & ((1u << bits) - 1)];
    at += bits;
  }
}

// memcpy of one element compiles to a plain load where the machine allows unaligned ones.
template <typename In, typename Out, typename Convert>
void decode_as(ByteSpan bytes, std::uint64_t first, std::span<Out> out, Convert convert) {
  const std::byte* from = bytes.data() + first * sizeof(In);
  for (Out& value : out) {
    In element;
    std::memcpy(&element, from, sizeof element);
    value = convert(element);
    from += sizeof element;
  }
}

double from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

// Normal numbers by moving their fields: 1008 is the bias of double less that of half, 1023 - 15.
// Subnormal numbers, infinities and NaNs are rare and take the general way.
double from_half(std::uint16_t bits) {
  const std::uint64_t exponent = (bits >> 10) & 31u;
  if (exponent == 0 || exponent == 31) return small_float(bits, kHalf);
  return std::bit_cast<double>(std::uint64_t{bits & 0x8000u} << 48 | (exponent + 1008) << 52 |
                               std::uint64_t{bits & 0x3FFu} << 42);
}

}  // namespace

template <typename Out>
void decode_elements(DType dtype, ByteSpan bytes, std::uint64_t first, std::span<Out> out) {
  const auto as = [&]<typename In>(In) {
    decode_as<In>(bytes, first, out, [](In value) { return static_cast<Out>(value); });
  };
  if constexpr (std::is_integral_v<Out>) {
    // Exact integers have one type in and out; all others go through double.
    assert(dtype == DTypeOf<Out>::value);
    return as(Out{});
  } else {
    constexpr bool kComplex = !std::is_floating_point_v<Out>;
    const auto number = [&]<typename In>(In) {
      decode_as<In>(bytes, first, out, [](In value) { return static_cast<double>(value); });
    };
    switch (dtype) {
      case DType::f32:
        return number(float{});
      case DType::f64:
        return number(double{});
      case DType::f16:
        return decode_as<std::uint16_t>(bytes, first, out, from_half);
      case DType::bf16:
        return decode_as<std::uint16_t>(bytes, first, out, from_bf16);
      case DType::i16:
        return number(std::int16_t{});
      case DType::i32:
        return number(std::int32_t{});
      case DType::i64:
        return number(std::int64_t{});
      case DType::u16:
        return number(std::uint16_t{});
      case DType::u32:
        return number(std::uint32_t{});
      case DType::u64:
        return number(std::uint64_t{});
      case DType::c64:
        assert(kComplex);
        if constexpr (kComplex) as(std::complex<float>{});
        return;
      case DType::c128:
        assert(kComplex);
        if constexpr (kComplex) as(std::complex<double>{});
        return;
      case DType::i8:
      case DType::u8:
      case DType::boolean:
      case DType::f8_e4m3:
      case DType::f8_e5m2:
      case DType::f8_e8m0:
      case DType::f8_e4m3fnuz:
      case DType::f8_e5m2fnuz:
      case DType::f6_e2m3:
      case DType::f6_e3m2:
      case DType::f4_e2m1:
      case DType::i4:
      case DType::u4:
      case DType::i2:
      case DType::u2:
      case DType::ternary:
      case DType::binary:
        return decode_small(dtype, bytes, first, out);
    }
  }
}

template void decode_elements(DType, ByteSpan, std::uint64_t, std::span<double>);
template void decode_elements(DType, ByteSpan, std::uint64_t, std::span<std::complex<double>>);
template void decode_elements(DType, ByteSpan, std::uint64_t, std::span<std::int64_t>);
template void decode_elements(DType, ByteSpan, std::uint64_t, std::span<std::uint64_t>);

}  // namespace thalia::model
