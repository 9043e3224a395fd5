// Names and sizes of loom's element types. What the original does not know it takes for float32.
#include <array>
#include <utility>

#include "formats/loom/fold_case.h"
#include "thalia/formats/loom_network.h"

namespace thalia {
namespace formats::loom {
namespace {

struct DTypeFacts {
  std::string_view name;
  unsigned bits;
  std::optional<DType> thalia;
};
constexpr std::array<DTypeFacts, kLoomDTypeCount> kDTypeFacts{{
    {"float64", 64, DType::f64},   {"float32", 32, DType::f32},  {"float16", 16, DType::f16},
    {"bfloat16", 16, DType::bf16}, {"fp8e4m3", 8, std::nullopt}, {"fp8e5m2", 8, std::nullopt},
    {"int64", 64, DType::i64},     {"int32", 32, DType::i32},    {"int16", 16, DType::i16},
    {"int8", 8, DType::i8},        {"uint64", 64, DType::u64},   {"uint32", 32, DType::u32},
    {"uint16", 16, DType::u16},    {"uint8", 8, DType::u8},      {"int4", 4, std::nullopt},
    {"uint4", 4, std::nullopt},    {"fp4", 4, std::nullopt},     {"int2", 2, std::nullopt},
    {"uint2", 2, std::nullopt},    {"ternary", 2, std::nullopt}, {"binary", 1, std::nullopt},
}};

// Beside the names in files.
constexpr std::array<std::pair<std::string_view, LoomDType>, 17> kAliases{{
    {"fp64", LoomDType::float64},
    {"f64", LoomDType::float64},
    {"fp32", LoomDType::float32},
    {"f32", LoomDType::float32},
    {"fp16", LoomDType::float16},
    {"f16", LoomDType::float16},
    {"bf16", LoomDType::bfloat16},
    {"fp8", LoomDType::fp8e4m3},
    {"i64", LoomDType::int64},
    {"i32", LoomDType::int32},
    {"i16", LoomDType::int16},
    {"i8", LoomDType::int8},
    {"u64", LoomDType::uint64},
    {"u32", LoomDType::uint32},
    {"u16", LoomDType::uint16},
    {"u8", LoomDType::uint8},
    {"f4", LoomDType::fp4},
}};

const DTypeFacts& facts_of(LoomDType dtype) noexcept {
  return kDTypeFacts[static_cast<std::size_t>(dtype)];
}

}  // namespace
}  // namespace formats::loom

namespace loom = formats::loom;

std::string_view loom_dtype_name(LoomDType dtype) noexcept {
  return loom::facts_of(dtype).name;
}

std::optional<LoomDType> loom_dtype_from_name(std::string_view name) noexcept {
  for (std::uint8_t i = 0; i < kLoomDTypeCount; ++i)
    if (loom::equal_fold(name, loom::kDTypeFacts[i].name)) return static_cast<LoomDType>(i);
  for (const auto& [alias, dtype] : loom::kAliases)
    if (loom::equal_fold(name, alias)) return dtype;
  return std::nullopt;
}

LoomDType parse_loom_dtype(std::string_view name) noexcept {
  return loom_dtype_from_name(name).value_or(LoomDType::float32);
}

unsigned loom_dtype_bits(LoomDType dtype) noexcept {
  return loom::facts_of(dtype).bits;
}

unsigned loom_element_bytes(LoomDType dtype) noexcept {
  const unsigned bits = loom_dtype_bits(dtype);
  return bits < 8 ? 1 : bits / 8;
}

std::optional<std::uint64_t> loom_packed_bytes(LoomDType dtype, std::uint64_t count) noexcept {
  const unsigned bits = loom_dtype_bits(dtype);
  if (bits < 8) {
    const unsigned in_a_byte = 8 / bits;
    return count / in_a_byte + (count % in_a_byte != 0 ? 1 : 0);
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, bits / 8, &bytes)) return std::nullopt;
  return bytes;
}

std::uint64_t loom_element_count(LoomDType dtype, std::uint64_t packed_bytes) noexcept {
  const unsigned bits = loom_dtype_bits(dtype);
  if (bits >= 8) return packed_bytes / (bits / 8);
  // No file is so long that this wraps.
  return packed_bytes * (8 / bits);
}

std::optional<DType> loom_dtype_as_thalia(LoomDType dtype) noexcept {
  return loom::facts_of(dtype).thalia;
}

}  // namespace thalia
