// Packed elements, a piece at a time.
#pragma once

#include <cstddef>

#include "thalia/formats/loom_network.h"

namespace thalia::formats::loom {

/// Elements that fill whole bytes of every type: pieces of this many can be packed one by one.
inline constexpr std::size_t kPieceElements = 4096;

/// @param packed loom_packed_bytes() of the elements.
void pack(LoomDType dtype, ByteSpan elements, MutableByteSpan packed) noexcept;
/// @param elements of loom_element_count(), or of fewer.
void unpack(LoomDType dtype, ByteSpan packed, MutableByteSpan elements) noexcept;

}  // namespace thalia::formats::loom
