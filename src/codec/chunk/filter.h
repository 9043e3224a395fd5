// Filters: transforms that make a chunk easier to compress and keep its length.
// docs/format/format.md, "Chunks".
#pragma once

#include <span>

#include "codec/cpu/element_layout.h"
#include "format/chunk.h"
#include "thalia/types.h"

namespace thalia::codec {

/// The filters that may help elements of this layout, `none` first. Static storage.
std::span<const format::Filter> filters_for(ElementLayout layout) noexcept;

/// @throws UnsupportedError for a filter that this version lacks.
void check_filter(format::Filter filter);

/// Writes the filtered bytes to `out`, which has the same size and does not overlap `raw`.
/// @throws UnsupportedError.
void apply_filter(format::Filter filter, ByteSpan raw, MutableByteSpan out);

/// The inverse of apply_filter(). It is defined for any bytes: all of them are the filtered form of
/// some chunk. @throws UnsupportedError.
void undo_filter(format::Filter filter, ByteSpan filtered, MutableByteSpan raw);

}  // namespace thalia::codec
