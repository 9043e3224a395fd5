// Arrays converted one number at a time: the rest of an array after its last whole vector, and the
// whole array if there are no vector kernels.
#pragma once

#include <cstring>

#include "codec/float/bits.h"
#include "codec/float/kernels.h"

namespace thalia::codec {

template <typename T>
T load_element(const std::byte* array, std::size_t i) noexcept {
  T value;
  std::memcpy(&value, array + i * sizeof(T), sizeof(T));
  return value;
}

template <typename From, typename To, std::uint64_t (*kConvert)(std::uint64_t)>
void convert_each(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto converted = static_cast<To>(kConvert(load_element<From>(from, i)));
    std::memcpy(to + i * sizeof(To), &converted, sizeof(To));
  }
}

inline constexpr FloatKernels::Convert kEachF32ToF16 =
    convert_each<std::uint32_t, std::uint16_t, narrow_bits<kF32Layout, kF16Layout>>;
inline constexpr FloatKernels::Convert kEachF32ToBF16 =
    convert_each<std::uint32_t, std::uint16_t, narrow_bits<kF32Layout, kBF16Layout>>;
inline constexpr FloatKernels::Convert kEachF32ToF64 =
    convert_each<std::uint32_t, std::uint64_t, widen_bits<kF32Layout, kF64Layout>>;
inline constexpr FloatKernels::Convert kEachF64ToF16 =
    convert_each<std::uint64_t, std::uint16_t, narrow_bits<kF64Layout, kF16Layout>>;
inline constexpr FloatKernels::Convert kEachF64ToBF16 =
    convert_each<std::uint64_t, std::uint16_t, narrow_bits<kF64Layout, kBF16Layout>>;
inline constexpr FloatKernels::Convert kEachF64ToF32 =
    convert_each<std::uint64_t, std::uint32_t, narrow_bits<kF64Layout, kF32Layout>>;
inline constexpr FloatKernels::Convert kEachF16ToF32 =
    convert_each<std::uint16_t, std::uint32_t, widen_bits<kF16Layout, kF32Layout>>;
inline constexpr FloatKernels::Convert kEachBF16ToF32 =
    convert_each<std::uint16_t, std::uint32_t, widen_bits<kBF16Layout, kF32Layout>>;

}  // namespace thalia::codec
