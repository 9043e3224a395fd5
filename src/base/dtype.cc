// One row for each dtype, at the index that is its code in the file format: rows are added at the
// end and never moved. docs/format/format.md, "Element types".
#include "thalia/dtype.h"

#include <array>

namespace thalia {
namespace {

struct Row {
  std::string_view name;
  std::uint8_t bits;
  std::uint8_t alignment;
};

// Name, bits of an element, and alignment in bytes, in the order of the codes.
constexpr std::array<Row, kDTypeCount> kRows{{
    {"f32", 32, 4},        {"f16", 16, 2},        {"i8", 8, 1},      {"f64", 64, 8},
    {"bf16", 16, 2},       {"i16", 16, 2},        {"i32", 32, 4},    {"i64", 64, 8},
    {"u8", 8, 1},          {"u16", 16, 2},        {"u32", 32, 4},    {"u64", 64, 8},
    {"bool", 8, 1},        {"f8_e4m3", 8, 1},     {"f8_e5m2", 8, 1}, {"f8_e8m0", 8, 1},
    {"f8_e4m3fnuz", 8, 1}, {"f8_e5m2fnuz", 8, 1}, {"f6_e2m3", 6, 1}, {"f6_e3m2", 6, 1},
    {"f4_e2m1", 4, 1},     {"i4", 4, 1},          {"u4", 4, 1},      {"i2", 2, 1},
    {"u2", 2, 1},          {"ternary", 2, 1},     {"binary", 1, 1},  {"c64", 64, 4},
    {"c128", 128, 8},
}};

const Row& row(DType dtype) noexcept {
  return kRows[static_cast<std::uint8_t>(dtype)];
}

}  // namespace

std::string_view dtype_name(DType dtype) noexcept {
  return row(dtype).name;
}
unsigned dtype_bits(DType dtype) noexcept {
  return row(dtype).bits;
}
unsigned dtype_alignment(DType dtype) noexcept {
  return row(dtype).alignment;
}

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    if (kRows[code].name == name) return static_cast<DType>(code);
  }
  return std::nullopt;
}

}  // namespace thalia
