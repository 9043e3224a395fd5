// One row for each dtype, at the index that is its code in the file format: rows are added at the
// end and never moved. docs/format/format.md, "Element types".
#include "base/dtype_facts.h"

#include <array>
#include <cmath>

namespace thalia {
namespace {

constexpr DTypeKind kFloat = DTypeKind::floating;
constexpr DTypeKind kSigned = DTypeKind::signed_integer;
constexpr DTypeKind kUnsigned = DTypeKind::unsigned_integer;
constexpr DTypeKind kBoolean = DTypeKind::boolean;
constexpr DTypeKind kComplex = DTypeKind::complex;
constexpr FloatSpecials kOneNan = FloatSpecials::one_nan;
constexpr FloatSpecials kNumbers = FloatSpecials::numbers;
constexpr FloatSpecials kMinusNan = FloatSpecials::minus_nan;

// clang-format off
// Name, bits of an element, alignment in bytes, kind; of floats the bits of exponent and mantissa,
// and the bias. In the order of the codes.
constexpr std::array<DTypeFacts, kDTypeCount> kRows{{
    {"f32", 32, 4, kFloat, {8, 23, 127}},
    {"f16", 16, 2, kFloat, {5, 10, 15}},
    {"i8", 8, 1, kSigned},
    {"f64", 64, 8, kFloat, {11, 52, 1023}},
    {"bf16", 16, 2, kFloat, {8, 7, 127}},
    {"i16", 16, 2, kSigned},
    {"i32", 32, 4, kSigned},
    {"i64", 64, 8, kSigned},
    {"u8", 8, 1, kUnsigned},
    {"u16", 16, 2, kUnsigned},
    {"u32", 32, 4, kUnsigned},
    {"u64", 64, 8, kUnsigned},
    {"bool", 8, 1, kBoolean},
    {"f8_e4m3", 8, 1, kFloat, {4, 3, 7, kOneNan}},
    {"f8_e5m2", 8, 1, kFloat, {5, 2, 15}},
    {"f8_e8m0", 8, 1, kFloat, {8, 0, 127, kOneNan}},
    {"f8_e4m3fnuz", 8, 1, kFloat, {4, 3, 8, kMinusNan}},
    {"f8_e5m2fnuz", 8, 1, kFloat, {5, 2, 16, kMinusNan}},
    {"f6_e2m3", 6, 1, kFloat, {2, 3, 1, kNumbers}},
    {"f6_e3m2", 6, 1, kFloat, {3, 2, 3, kNumbers}},
    {"f4_e2m1", 4, 1, kFloat, {2, 1, 1, kNumbers}},
    {"i4", 4, 1, kSigned},
    {"u4", 4, 1, kUnsigned},
    {"i2", 2, 1, kSigned},
    {"u2", 2, 1, kUnsigned},
    {"ternary", 2, 1, kSigned},
    {"binary", 1, 1, kSigned},
    {"c64", 64, 4, kComplex, {8, 23, 127}},
    {"c128", 128, 8, kComplex, {11, 52, 1023}},
}};
// clang-format on

}  // namespace

const DTypeFacts& dtype_facts(DType dtype) noexcept {
  return kRows[static_cast<std::uint8_t>(dtype)];
}

double least_normal(DType dtype) noexcept {
  const FloatFields& fields = dtype_facts(dtype).fields;
  return fields.mantissa_bits == 0 ? 0 : std::ldexp(1.0, 1 - fields.bias);
}

std::string_view dtype_name(DType dtype) noexcept {
  return dtype_facts(dtype).name;
}
unsigned dtype_bits(DType dtype) noexcept {
  return dtype_facts(dtype).bits;
}
unsigned dtype_alignment(DType dtype) noexcept {
  return dtype_facts(dtype).alignment;
}

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    if (kRows[code].name == name) return static_cast<DType>(code);
  }
  return std::nullopt;
}

}  // namespace thalia
