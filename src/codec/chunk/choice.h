// How a chunk is stored when a codec is asked for, found on a sample of it.
// docs/contribute/design.md, "Compress where it pays".
#pragma once

#include "codec/cpu/element_layout.h"
#include "format/chunk.h"
#include "thalia/types.h"

namespace thalia::codec {

struct ChunkChoice {
  Codec codec = Codec::none;
  format::Filter filter = format::Filter::none;
  int level = 0;
};

/// The coding that promises the smallest chunk within what `wanted` allows. For zstd and lz4 that
/// is the filter that fits best. The codecs of floats code what they are made for, and leave the
/// rest to zstd at its fastest. Equal arguments give equal answers. `level` is one of the codec's,
/// not 0 if it has levels.
ChunkChoice choose_coding(Codec wanted, int level, ElementLayout layout, ByteSpan raw);

}  // namespace thalia::codec
