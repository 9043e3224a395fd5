// One chunk to its stored form and back. Spans in, spans out; knows nothing of files.
// docs/format.md, "Chunks".
#pragma once

#include <cstdint>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/format/chunk.h"

namespace thalia::codec {

/// Encodes `raw` into `out` (replacing its contents) as one standard frame that carries its content
/// size. Where the frame is not smaller than the raw bytes, `out` becomes a copy of them.
/// @param level 0 for the codec's default, else 1..22 (zstd) or 1..12 (lz4).
/// @return the codec used: `wanted` or store.
/// @throws UsageError (bad_argument) for a level that is none; UnsupportedError for a codec that
/// this version lacks.
format::Codec encode_chunk(format::Codec wanted, int level, ByteSpan raw,
                           std::vector<std::byte>& out);

/// Decodes into exactly raw.size() bytes and never writes beyond. @throws CompressionError
/// where the stored bytes are no single frame of that content; UnsupportedError for a codec or
/// filter this version lacks.
void decode_chunk(format::Codec codec, format::Filter filter, ByteSpan stored, MutableByteSpan raw);

/// 1..22, 1..12; {0, 0} for store.
struct LevelRange {
  int lowest;
  int highest;
  int standard;
};
LevelRange level_range(format::Codec codec);

}  // namespace thalia::codec
