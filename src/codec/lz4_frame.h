// One LZ4 frame (LZ4 Frame Format 1.6) that says how many bytes it holds.
#pragma once

#include <vector>

#include "thalia/bytes.h"

namespace thalia::codec {

/// Replaces `out` with the frame. @param level 1 to 12.
void lz4_encode(int level, ByteSpan raw, std::vector<std::byte>& out);

/// @throws FormatError (bad_value) unless `stored` is one frame of exactly raw.size() bytes.
void lz4_decode(ByteSpan stored, MutableByteSpan raw);

}  // namespace thalia::codec
