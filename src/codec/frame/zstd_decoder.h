// Zstandard frames (RFC 8878) piece by piece.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "codec/frame/frame.h"
#include "thalia/types.h"

namespace thalia::codec {

std::unique_ptr<FrameDecoder> make_zstd_decoder();
/// @throws CompressionError if these are not the first bytes of a frame.
std::optional<std::uint64_t> zstd_content_size(ByteSpan start);

}  // namespace thalia::codec
