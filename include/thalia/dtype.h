// Element types. Codes and bit layouts: docs/format/format.md, "Element types".
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace thalia {

/// Persistent: values are part of the format.
enum class DType : std::uint8_t {
  f32 = 0,
  f16 = 1,
  i8 = 2,
  f64 = 3,
  bf16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  u8 = 8,
  u16 = 9,
  u32 = 10,
  u64 = 11,
  boolean = 12,  ///< spelled "bool" everywhere but in C++
  f8_e4m3 = 13,
  f8_e5m2 = 14,
  f8_e8m0 = 15,
  f8_e4m3fnuz = 16,
  f8_e5m2fnuz = 17,
  f6_e2m3 = 18,
  f6_e3m2 = 19,
  f4_e2m1 = 20,
  i4 = 21,
  u4 = 22,
  i2 = 23,
  u2 = 24,
  ternary = 25,
  binary = 26,
  c64 = 27,
  c128 = 28,
};
inline constexpr std::uint8_t kDTypeCount = 29;

/// "f32", "bf16", "bool", …: the name in docs/format/format.md, in JSON and on the command line.
/// Static storage.
std::string_view dtype_name(DType dtype) noexcept;
std::optional<DType> dtype_from_name(std::string_view name) noexcept;
/// Bits an element occupies: 1, 2, 4, 6, 8, 16, 32, 64 or 128.
unsigned dtype_bits(DType dtype) noexcept;
/// Bytes to which an element, or one half of a complex one, is aligned in memory: 1, 2, 4 or 8.
unsigned dtype_alignment(DType dtype) noexcept;
/// True for elements that are not whole bytes; those are packed, least significant bit first.
inline bool dtype_is_packed(DType dtype) noexcept {
  return dtype_bits(dtype) % 8 != 0;
}

/// True for elements with a real and an imaginary part.
constexpr bool dtype_is_complex(DType dtype) noexcept {
  return dtype == DType::c64 || dtype == DType::c128;
}

/// An IEEE 754 binary16 value as its bits, for typed access; arithmetic is the caller's.
struct Float16 {
  std::uint16_t bits;
};
/// A bfloat16 value as its bits.
struct BFloat16 {
  std::uint16_t bits;
};

/// The dtype that typed access through T asks for. Defined for the types below only.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::u16;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::u32;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::u64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
template <>
struct DTypeOf<std::complex<float>> {
  static constexpr DType value = DType::c64;
};
template <>
struct DTypeOf<std::complex<double>> {
  static constexpr DType value = DType::c128;
};

}  // namespace thalia
