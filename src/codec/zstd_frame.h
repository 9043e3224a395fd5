// One Zstandard frame (RFC 8878) with its content size.
#pragma once

#include <vector>

#include "thalia/bytes.h"

namespace thalia::codec {

/// Replaces `out` by the frame of `raw`. `level` is 1 to 22.
void zstd_encode(int level, ByteSpan raw, std::vector<std::byte>& out);
/// @throws FormatError (bad_value) where `stored` is no single frame of exactly raw.size() bytes.
void zstd_decode(ByteSpan stored, MutableByteSpan raw);

}  // namespace thalia::codec
