// Copies of large memory that nobody reads soon: the stores bypass the caches.
#pragma once

#include <cstddef>

#include "thalia/types.h"

namespace thalia {

/// A memcpy of `from` to `to` that does not read the target's cache lines first, if the
/// processor can store past its caches. On one core it is as fast as a memcpy of hundreds of MB at
/// once, and 1.6 times as fast as a memcpy of a few MB, which is what each of several threads would
/// use. The two must not overlap. Other threads may read `to` after fence_stream_copies().
void stream_copy(ByteSpan from, std::byte* to) noexcept;

/// Orders the calling thread's copies before whatever it stores afterwards. One call is enough for
/// many copies.
void fence_stream_copies() noexcept;

}  // namespace thalia
