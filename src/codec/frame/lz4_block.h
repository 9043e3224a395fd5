// LZ4 blocks without a frame (LZ4 Block Format). Anybody who stores one keeps both lengths.
#pragma once

#include <vector>

#include "thalia/types.h"

namespace thalia::codec {

/// Replaces `out` by the block of `raw`, less than 2 GB. `level` is 1 to 12; from 3 on the slower,
/// denser search.
void lz4_block_encode(int level, ByteSpan raw, std::vector<std::byte>& out);

/// Decodes into exactly raw.size() bytes and never writes beyond. @throws CompressionError if
/// `stored` is no block of that content.
void lz4_block_decode(ByteSpan stored, MutableByteSpan raw);

}  // namespace thalia::codec
