// What makes a chunk easier to compress and keeps its length. docs/format.md, "Chunks".
#pragma once

#include <span>

#include "codec/cpu/element_layout.h"
#include "format/chunk.h"
#include "thalia/bytes.h"

namespace thalia::codec {

/// The filters that may help elements of this layout, `none` first. Static storage.
std::span<const format::Filter> filters_for(ElementLayout layout) noexcept;

/// @throws UnsupportedError for a filter that this version lacks.
void check_filter(format::Filter filter);

/// Replaces `out`, of the same size and elsewhere. @throws UnsupportedError.
void apply_filter(format::Filter filter, ByteSpan raw, MutableByteSpan out);

/// The inverse; whatever the bytes are, they are those of some chunk. @throws UnsupportedError.
void undo_filter(format::Filter filter, ByteSpan filtered, MutableByteSpan raw);

}  // namespace thalia::codec
