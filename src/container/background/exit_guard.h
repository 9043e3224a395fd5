// Background saves and std::exit: none may run into the destruction of what it uses.
#pragma once

#include <memory>

namespace thalia::detail {

class SaveQueue;

/// Queues that are watched when the process exits in an orderly way: their saves are cancelled, and
/// given a few seconds to end, before the statics that were there before them are destroyed. In a
/// forked child, which has no background threads, nothing happens to them, not even destruction.
/// @throws std::bad_alloc. Internally synchronised.
void watch_at_exit(std::shared_ptr<SaveQueue> queue);
void unwatch_at_exit(const SaveQueue& queue) noexcept;

}  // namespace thalia::detail
