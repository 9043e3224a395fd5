// Which elements of two tensors differ, at the speed of memory where few do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/cpu/processor.h"
#include "thalia/types.h"

namespace thalia::codec {

/// Elements of one call at most: their numbers are u16.
inline constexpr std::size_t kMostCompared = 65536;
/// Bytes that are written beyond the positions, and beyond the values, by whole vectors.
inline constexpr std::size_t kChangedSlack = 64;

/// Where changed elements go. Each has room for all elements of a call, and the slack.
struct ChangedElements {
  std::uint16_t* positions;  ///< numbers of the elements, ascending
  std::byte* values;         ///< their bytes in `now`
};

/// The elements of `now` whose bits are not those of `base`. Both have the same whole elements, at
/// any address. @param width bytes of an element: 1, 2, 4, 8 or 16. @return how many.
std::size_t find_changed(ByteSpan base, ByteSpan now, unsigned width, ChangedElements out,
                         VectorSet set = fastest_vector_set()) noexcept;

}  // namespace thalia::codec
