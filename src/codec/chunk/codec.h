// One chunk to its stored form and back. Spans in, spans out; knows nothing of files.
// docs/format/format.md, "Chunks".
#pragma once

#include <cstdint>
#include <vector>

#include "codec/cpu/element_layout.h"
#include "format/chunk.h"
#include "thalia/types.h"

namespace thalia::codec {

/// Codec and filter of a chunk's stored bytes, as its entry names them.
struct ChunkForm {
  Codec codec = Codec::none;
  format::Filter filter = format::Filter::none;
  friend bool operator==(const ChunkForm&, const ChunkForm&) = default;
};

/// Encodes `raw` into `out`, replacing its contents, with a filter if one helps. If that does
/// not save at least the chunk's entry in the directory, `out` becomes a copy of the raw bytes, and
/// the form is store without a filter. Equal arguments give equal bytes.
/// @param level 0 for the codec's default, else 1 to 22 (zstd) or 1 to 12 (lz4).
/// @throws UsageError (bad_argument) for an unknown codec, or a level that it does not
/// have.
ChunkForm encode_chunk(Codec wanted, int level, ElementLayout layout, ByteSpan raw,
                       std::vector<std::byte>& out);

/// Decodes into exactly raw.size() bytes and never writes beyond. @throws CompressionError
/// if the stored bytes are no single stream of that content; UnsupportedError for a codec or
/// filter this version lacks.
void decode_chunk(Codec codec, format::Filter filter, ByteSpan stored, MutableByteSpan raw);

struct StoredChunk {
  ChunkForm form;
  ByteSpan stored;
  MutableByteSpan raw;
};

/// Decodes two chunks as decode_chunk() does, in less time if the codec can do two at once.
/// @throws as decode_chunk(), for either; then neither is complete.
void decode_two_chunks(const StoredChunk& first, const StoredChunk& second);

/// The level that is meant: 1 to 22 for zstd, 1 to 12 for lz4, the codec's own for 0; always 0 for
/// a codec without levels. @throws UsageError (bad_argument) for an unknown codec, or a
/// level that it does not have.
int checked_level(Codec codec, int level);

}  // namespace thalia::codec
