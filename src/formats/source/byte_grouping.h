// Byte grouping and deltas of a part of a tensor at a time, so that no copy of the whole is made.
// docs/format/mckp.md, "Methods".
#pragma once

#include <cstdint>

#include "thalia/types.h"

namespace thalia::formats {

/// Bytes [begin, begin + out.size()) of the grouped form of `raw`: byte 0 of each element, then
/// byte 1 of each, …. `width` is 2, 4 or 8 and divides raw.size(); 0 or 1: the bytes as they are.
/// Each byte is XORed with the one of `base`, which is empty or as long as `raw`.
void gather_planes(ByteSpan raw, ByteSpan base, unsigned width, std::uint64_t begin,
                   MutableByteSpan out);

/// The inverse: puts `part` to where it belongs in `raw`, or XORs it into what is there.
void scatter_planes(ByteSpan part, unsigned width, std::uint64_t begin, bool delta,
                    MutableByteSpan raw);

}  // namespace thalia::formats
