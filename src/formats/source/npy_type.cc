// NumPy's codes: a letter of byte order, one of kind, and bytes. Types that it lacks are written as
// the package ml_dtypes has numpy.save write them.
#include "formats/source/npy_type.h"

#include <fmt/format.h>

#include <array>

#include "base/dtype_facts.h"

namespace thalia::formats::npy {
namespace {

struct NamedType {
  std::string_view name;
  DType dtype;
};
// After the letter of the byte order.
constexpr std::array kCodes{
    NamedType{"f4", DType::f32},    NamedType{"f2", DType::f16}, NamedType{"f8", DType::f64},
    NamedType{"i1", DType::i8},     NamedType{"i2", DType::i16}, NamedType{"i4", DType::i32},
    NamedType{"i8", DType::i64},    NamedType{"u1", DType::u8},  NamedType{"u2", DType::u16},
    NamedType{"u4", DType::u32},    NamedType{"u8", DType::u64}, NamedType{"b1", DType::boolean},
    NamedType{"?", DType::boolean}, NamedType{"c8", DType::c64}, NamedType{"c16", DType::c128},
    NamedType{"f1", DType::f8_e5m2}};
constexpr std::array kNames{NamedType{"float32", DType::f32},
                            NamedType{"float16", DType::f16},
                            NamedType{"float64", DType::f64},
                            NamedType{"int8", DType::i8},
                            NamedType{"int16", DType::i16},
                            NamedType{"int32", DType::i32},
                            NamedType{"int64", DType::i64},
                            NamedType{"uint8", DType::u8},
                            NamedType{"uint16", DType::u16},
                            NamedType{"uint32", DType::u32},
                            NamedType{"uint64", DType::u64},
                            NamedType{"bool", DType::boolean},
                            NamedType{"complex64", DType::c64},
                            NamedType{"complex128", DType::c128},
                            NamedType{"bfloat16", DType::bf16},
                            NamedType{"float8_e4m3fn", DType::f8_e4m3},
                            NamedType{"float8_e5m2", DType::f8_e5m2},
                            NamedType{"float8_e8m0fnu", DType::f8_e8m0},
                            NamedType{"float8_e4m3fnuz", DType::f8_e4m3fnuz},
                            NamedType{"float8_e5m2fnuz", DType::f8_e5m2fnuz}};

template <std::size_t N>
std::optional<DType> named(const std::array<NamedType, N>& table, std::string_view name) {
  for (const NamedType& known : table)
    if (known.name == name) return known.dtype;
  return std::nullopt;
}

}  // namespace
}  // namespace thalia::formats::npy

namespace thalia::formats {

std::optional<NpyType> npy_type(std::string_view descr) noexcept {
  // ml_dtypes' own, and the only one of two bytes.
  if (descr == "<V2") return NpyType{.dtype = DType::bf16};
  if (const auto dtype = npy::named(npy::kNames, descr)) return NpyType{.dtype = *dtype};
  const bool ordered = descr.find_first_of("<>|=") == 0;
  const std::string_view code = descr.substr(ordered ? 1 : 0);
  if (const auto dtype = npy::named(npy::kCodes, code)) {
    return NpyType{.dtype = *dtype, .swapped = descr.front() == '>' && dtype_alignment(*dtype) > 1};
  }
  if (!code.starts_with('V') || code.size() < 2 || code.size() > 6 || code[1] == '0')
    return std::nullopt;
  std::uint32_t bytes = 0;
  for (const char c : code.substr(1)) {
    if (c < '0' || c > '9') return std::nullopt;
    bytes = bytes * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return NpyType{.dtype = DType::u8, .opaque = bytes};
}

std::string npy_descr(DType dtype) {
  const DTypeFacts& facts = dtype_facts(dtype);
  if (facts.bits < 8) return {};
  const unsigned bytes = facts.bits / 8;
  // Floats that NumPy lacks are bytes to it.
  const bool is_lacking = facts.kind == DTypeKind::floating && (bytes == 1 || dtype == DType::bf16);
  if (is_lacking) return fmt::format("<V{}", bytes);
  constexpr std::string_view kLetters = "fiubc";  // of DTypeKind
  return fmt::format("{}{}{}", bytes == 1 ? '|' : '<',
                     kLetters[static_cast<std::size_t>(facts.kind)], bytes);
}

std::string_view why_no_npy_type(std::string_view descr) noexcept {
  const std::size_t at = descr.find_first_not_of("<>|=");
  switch (at == std::string_view::npos ? '\0' : descr[at]) {
    case 'O':
      return "the array holds Python objects, a pickle, which is never opened";
    case 'U':
    case 'S':
    case 'a':
    case 'T':
      return "the array holds texts";
    case 'M':
    case 'm':
      return "the array holds dates or durations";
    default:
      return "unknown element type";
  }
}

}  // namespace thalia::formats
