// How a chunk is stored when a codec is asked for: found on a sample of it. docs/design.md,
// "Compress where it pays".
#pragma once

#include "codec/cpu/element_layout.h"
#include "format/chunk.h"
#include "thalia/bytes.h"

namespace thalia::codec {

struct ChunkChoice {
  Codec codec = Codec::store;
  format::Filter filter = format::Filter::none;
  int level = 0;
};

/// What promises the smallest chunk of what `wanted` allows: zstd and lz4 with the filter that fits
/// best; the codecs of floats for what they are made for, and zstd at its fastest for the rest.
/// Equal arguments give equal answers. `level` is one of the codec's, not 0 where it has some.
ChunkChoice choose_coding(Codec wanted, int level, ElementLayout layout, ByteSpan raw);

}  // namespace thalia::codec
