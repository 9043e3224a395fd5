// One LZ4 frame (LZ4 Frame Format 1.6.x) with its content size.
#pragma once

#include <vector>

#include "thalia/types.h"

namespace thalia::codec {

/// The largest block of a frame; one of less content has the smallest block size that holds it.
enum class Lz4BlockSize { kib64, mib4 };

/// Replaces `out` by the frame of `raw`, with its content size, and a checksum of the
/// content if it is asked for. `level` is 1 to 12; from 3 on the slower, denser search.
void lz4_encode(int level, ByteSpan raw, std::vector<std::byte>& out, bool with_checksum = false,
                Lz4BlockSize block_size = Lz4BlockSize::mib4);
/// @throws CompressionError if `stored` is no single frame of exactly raw.size() bytes,
/// or if it has no content size of its own and needs one.
void lz4_decode(ByteSpan stored, MutableByteSpan raw, bool needs_size = true);

}  // namespace thalia::codec
