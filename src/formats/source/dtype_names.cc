// The table is in the order of the reference's `enum Dtype`: a dtype's place in it is its rank, and
// a file sorts its tensors by that. New entries go where the reference has them, not to the end.
#include "formats/source/dtype_names.h"

#include <array>

namespace thalia::formats {
namespace {

constexpr std::array kTable = std::to_array<SafetensorsDType>({
    {"BOOL", DType::boolean},
    {"F4", DType::f4_e2m1},
    {"F6_E2M3", DType::f6_e2m3},
    {"F6_E3M2", DType::f6_e3m2},
    {"U8", DType::u8},
    {"I8", DType::i8},
    {"F8_E5M2", DType::f8_e5m2},
    {"F8_E4M3", DType::f8_e4m3},
    {"F8_E8M0", DType::f8_e8m0},
    {"F8_E4M3FNUZ", DType::f8_e4m3fnuz},
    {"F8_E5M2FNUZ", DType::f8_e5m2fnuz},
    {"I16", DType::i16},
    {"U16", DType::u16},
    {"F16", DType::f16},
    {"BF16", DType::bf16},
    {"I32", DType::i32},
    {"U32", DType::u32},
    {"F32", DType::f32},
    {"C64", DType::c64},
    {"F64", DType::f64},
    {"I64", DType::i64},
    {"U64", DType::u64},
});

constexpr unsigned kAbsent = ~0u;

// The table read the other way round, made by the compiler.
constexpr std::array<unsigned, kDTypeCount> kRanks = [] {
  std::array<unsigned, kDTypeCount> ranks{};
  ranks.fill(kAbsent);
  for (unsigned i = 0; i < kTable.size(); ++i) ranks[static_cast<unsigned>(kTable[i].dtype)] = i;
  return ranks;
}();

}  // namespace

std::optional<unsigned> safetensors_rank(DType dtype) noexcept {
  const unsigned rank = kRanks[static_cast<unsigned>(dtype)];
  return rank == kAbsent ? std::nullopt : std::optional(rank);
}

std::string_view safetensors_dtype_name(DType dtype) noexcept {
  const auto rank = safetensors_rank(dtype);
  return rank ? kTable[*rank].name : std::string_view();
}

std::optional<DType> safetensors_dtype_from_name(std::string_view name) noexcept {
  for (const SafetensorsDType& entry : kTable) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

SafetensorsSize safetensors_size(DType dtype, const Shape& shape) noexcept {
  std::uint64_t bits = 1;
  for (const std::uint64_t extent : shape.extents()) {
    // The reference refuses here too, even if a later extent is 0.
    if (__builtin_mul_overflow(bits, extent, &bits)) return {.fault = SizeFault::overflow};
  }
  if (__builtin_mul_overflow(bits, std::uint64_t{dtype_bits(dtype)}, &bits)) {
    return {.fault = SizeFault::overflow};
  }
  if (bits % 8 != 0) return {.fault = SizeFault::no_whole_bytes};
  return {.bytes = bits / 8};
}

}  // namespace thalia::formats
