// Morph and Unpack over bytes at any address.
#pragma once

#include "thalia/formats/loom_network.h"

namespace thalia::formats::loom {

/// As morph_loom_weights(), of little-endian f32.
LoomNative morph(LoomDType dtype, ByteSpan master, float scale);
/// Little-endian f32 of the first master.size() / 4 elements, which are there.
void unpack_to(LoomDType dtype, ByteSpan packed, float scale, MutableByteSpan master) noexcept;

}  // namespace thalia::formats::loom
