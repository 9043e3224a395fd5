// The meaning of every bit pattern of every element type, in one place. Types of up to eight bits
// go through tables of 256 values, computed once from base/dtype_facts.h and shared by all
// threads; wider types are loaded and converted. Loads go through memcpy, so that bytes need no
// alignment.

#include "state/tensor/element_decoder.h"

#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/dtype_facts.h"

namespace thalia::state {
namespace {

double small_float(std::uint32_t bits, const FloatFields& type) {
  const std::uint32_t sign_bit = 1u << (type.exponent_bits + type.mantissa_bits);
  const std::uint32_t mantissa_mask = (1u << type.mantissa_bits) - 1;
  const std::uint32_t exponent_mask = (1u << type.exponent_bits) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask;
  const std::uint32_t exponent = (bits >> type.mantissa_bits) & exponent_mask;
  const double sign = bits & sign_bit ? -1 : 1;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (exponent == exponent_mask) {
    if (type.specials == FloatSpecials::ieee)
      return mantissa != 0 ? kNan : sign * std::numeric_limits<double>::infinity();
    if (type.specials == FloatSpecials::one_nan && mantissa == mantissa_mask) return kNan;
  }
  if (type.specials == FloatSpecials::minus_nan && bits == sign_bit) return kNan;
  // Exponent 0 holds subnormal numbers: the scale of exponent 1, without the implicit leading one.
  const int scale = static_cast<int>(exponent == 0 ? 1 : exponent) - type.bias -
                    static_cast<int>(type.mantissa_bits);
  return sign * std::ldexp(exponent == 0 ? mantissa : mantissa | (1u << type.mantissa_bits), scale);
}

// The value of a code of a type of up to eight bits.
double small_value(DType dtype, std::uint32_t code) {
  const DTypeFacts& facts = dtype_facts(dtype);
  switch (facts.kind) {
    case DTypeKind::floating:
      if (facts.fields.mantissa_bits > 0) return small_float(code, facts.fields);
      return code == 0xFF ? std::numeric_limits<double>::quiet_NaN()
                          : std::ldexp(1.0, static_cast<int>(code) - facts.fields.bias);
    case DTypeKind::signed_integer:
      if (facts.bits == 1) return code != 0 ? 1 : -1;
      return code >> (facts.bits - 1) ? static_cast<double>(code) - (1u << facts.bits) : code;
    case DTypeKind::unsigned_integer:
      return code;
    case DTypeKind::boolean:
      return code != 0;
    case DTypeKind::complex:
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
  if (exponent == 0 || exponent == 31) return small_float(bits, dtype_facts(DType::f16).fields);
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
    const unsigned bits = dtype_bits(dtype);
    if (bits <= 8) return decode_small(dtype, bytes, first, out);
    switch (dtype_facts(dtype).kind) {
      case DTypeKind::floating:
        if (bits == 64) return number(double{});
        if (bits == 32) return number(float{});
        // Two calls, so that each has its conversion in its loop.
        if (dtype == DType::f16) return decode_as<std::uint16_t>(bytes, first, out, from_half);
        return decode_as<std::uint16_t>(bytes, first, out, from_bf16);
      case DTypeKind::signed_integer:
        return bits == 16   ? number(std::int16_t{})
               : bits == 32 ? number(std::int32_t{})
                            : number(std::int64_t{});
      case DTypeKind::unsigned_integer:
        return bits == 16   ? number(std::uint16_t{})
               : bits == 32 ? number(std::uint32_t{})
                            : number(std::uint64_t{});
      case DTypeKind::complex:
        assert(kComplex);
        if constexpr (kComplex) bits == 64 ? as(std::complex<float>{}) : as(std::complex<double>{});
        return;
      case DTypeKind::boolean:
        return;  // of eight bits
    }
  }
}

template void decode_elements(DType, ByteSpan, std::uint64_t, std::span<double>);
template void decode_elements(DType, ByteSpan, std::uint64_t, std::span<std::complex<double>>);
template void decode_elements(DType, ByteSpan, std::uint64_t, std::span<std::int64_t>);
template void decode_elements(DType, ByteSpan, std::uint64_t, std::span<std::uint64_t>);

}  // namespace thalia::state
