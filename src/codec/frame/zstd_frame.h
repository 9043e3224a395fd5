// One Zstandard frame (RFC 8878) with its content size.
#pragma once

#include <vector>

#include "thalia/types.h"

namespace thalia::codec {

/// Replaces `out` by the frame of `raw`, with its content size, and a checksum of the
/// content if it is asked for. `level` is 1 to 22.
void zstd_encode(int level, ByteSpan raw, std::vector<std::byte>& out, bool with_checksum = false);
/// Whether a frame that begins like this, at least kFrameStart bytes or the whole of it, ends with
/// a checksum of its content, which every decoder checks.
bool zstd_has_checksum(ByteSpan start) noexcept;
/// @throws CompressionError if `stored` is no single frame of exactly raw.size() bytes,
/// or if it has no content size of its own and needs one.
void zstd_decode(ByteSpan stored, MutableByteSpan raw, bool needs_size = true);

}  // namespace thalia::codec
