// Words to planes and back: one table of functions for each set of instructions. Each plane has a
// pointer of its own, because entropy codecs keep planes apart; filters place them one after the
// other.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "codec/cpu/processor.h"

namespace thalia::codec {

/// Arrays need no alignment and must not overlap. No byte outside of them is touched.
struct PlaneKernels {
  /// Byte k of word i, little-endian, goes to planes[k][i].
  using Split = void (*)(const std::byte* words, std::size_t count,
                         std::byte* const* planes) noexcept;
  using Join = void (*)(const std::byte* const* planes, std::size_t count,
                        std::byte* words) noexcept;
  struct Pair {
    Split split;
    Join join;
  };
  /// For words of 2, 4 and 8 bytes.
  Pair plain[3];
  /// The same for words that are rotated left by one bit first: the highest bit, a float's sign,
  /// becomes the lowest, and the exponent starts with the highest bit of the last plane.
  Pair rotated[3];

  /// @param width 2, 4 or 8.
  const Pair& of(std::size_t width, bool is_rotated) const noexcept {
    return (is_rotated ? rotated : plain)[std::countr_zero(width) - 1];
  }
};

inline constexpr std::size_t kMaxPlanes = 8;

/// The kernels of a set that has_vector_set() holds for.
const PlaneKernels& plane_kernels(VectorSet set) noexcept;

extern const PlaneKernels kPortablePlanes;
#ifdef __x86_64__
extern const PlaneKernels kAvx2Planes;
extern const PlaneKernels kAvx512Planes;
#endif

/// The words after the last whole vector, from word `done` on.
template <std::size_t kWidth, bool kIsRotated>
void split_rest(const std::byte* words, std::size_t done, std::size_t count,
                std::byte* const* planes) noexcept {
  std::byte* rest[kWidth];
  for (std::size_t k = 0; k < kWidth; ++k) rest[k] = planes[k] + done;
  kPortablePlanes.of(kWidth, kIsRotated).split(words + done * kWidth, count - done, rest);
}
template <std::size_t kWidth, bool kIsRotated>
void join_rest(const std::byte* const* planes, std::size_t done, std::size_t count,
               std::byte* words) noexcept {
  const std::byte* rest[kWidth];
  for (std::size_t k = 0; k < kWidth; ++k) rest[k] = planes[k] + done;
  kPortablePlanes.of(kWidth, kIsRotated).join(rest, count - done, words + done * kWidth);
}

}  // namespace thalia::codec
