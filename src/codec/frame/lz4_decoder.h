// LZ4 frames (LZ4 Frame Format 1.6.x) piece by piece.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "codec/frame/frame.h"
#include "thalia/types.h"

namespace thalia::codec {

std::unique_ptr<FrameDecoder> make_lz4_decoder();
/// @throws CompressionError if these are not the first bytes of a frame.
std::optional<std::uint64_t> lz4_content_size(ByteSpan start);

}  // namespace thalia::codec
