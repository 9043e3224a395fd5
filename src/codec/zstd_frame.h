// One Zstandard frame (RFC 8878) that says how many bytes it holds.
#pragma once

#include <vector>

#include "thalia/bytes.h"

namespace thalia::codec {

/// Replaces `out` with the frame. @param level 1 to 22.
void zstd_encode(int level, ByteSpan raw, std::vector<std::byte>& out);

/// @throws FormatError (bad_value) unless `stored` is one frame of exactly raw.size() bytes.
void zstd_decode(ByteSpan stored, MutableByteSpan raw);

}  // namespace thalia::codec
