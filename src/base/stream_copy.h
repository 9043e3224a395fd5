// A copy of much memory that nobody reads soon: its stores go past the caches.
#pragma once

#include <cstddef>

#include "thalia/bytes.h"

namespace thalia {

/// memcpy of `from` to `to`, without reading the target's lines first where the processor can store
/// past its caches: on one core as fast as a memcpy of hundreds of MB at once, and 1.6 times as
/// fast as one of a few, which is what several threads would use. They do not overlap. Others read
/// `to` after settle_stream_copies().
void stream_copy(ByteSpan from, std::byte* to) noexcept;

/// Puts the calling thread's copies before whatever it stores afterwards. Once for many.
void settle_stream_copies() noexcept;

}  // namespace thalia
