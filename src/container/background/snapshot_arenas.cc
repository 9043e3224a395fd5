// Invariant: kept_ is sorted by size, has room for every arena in use (so that release() never
// allocates), and its bytes and those in use are counted separately; together they stay within the
// bound. An arena is kept rather than
// freed: page faults cost several times the copy. One that no longer fits is outgrown, and goes
// before a new one is made.
#include "container/background/snapshot_arenas.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace thalia::container {

SharedArena SnapshotArenas::take(Kept::iterator kept) {
  SharedArena arena = std::move(*kept);
  kept_.erase(kept);
  kept_bytes_ -= arena->memory.size();
  return arena;
}

// An arena of `bytes` or more that leaves room for `others` besides.
SharedArena SnapshotArenas::take(std::uint64_t bytes, std::uint64_t others) {
  bytes = format::align_up(bytes, kUnit);
  kept_.reserve(kept_.size() + arenas_in_use_ + 1);  // so that release() cannot fail
  const auto fitting = std::lower_bound(
      kept_.begin(), kept_.end(), bytes,
      [](const SharedArena& arena, std::uint64_t size) { return arena->memory.size() < size; });
  SharedArena arena;
  if (fitting != kept_.end() && in_use_ + (*fitting)->memory.size() + others <= bound_) {
    arena = take(fitting);
  } else {
    // States grow: if even the largest kept arena is too small, it will not be wanted again. Nor
    // will one that is too large. The others go only if they are in the limit's way.
    if (!kept_.empty()) take(kept_.end() - 1);
    while (!kept_.empty() && held() + bytes > bound_) take(kept_.begin());
    arena = std::make_shared<SnapshotArena>(bytes);
  }
  in_use_ += arena->memory.size();
  ++arenas_in_use_;
  assert(held() <= bound_);
  return arena;
}

SharedArena SnapshotArenas::acquire(std::uint64_t bytes) {
  if (bytes == 0) return nullptr;
  SharedArena arena = take(bytes, 0);
  // The copy touches them now, so the background thread need not.
  arena->touched = std::max(arena->touched, bytes);
  arena->reserved = 0;
  return arena;
}

void SnapshotArenas::release(SharedArena arena) noexcept {
  if (!arena) return;
  in_use_ -= arena->memory.size();
  --arenas_in_use_;
  const auto place = std::upper_bound(
      kept_.begin(), kept_.end(), arena->memory.size(),
      [](std::uint64_t size, const SharedArena& kept) { return size < kept->memory.size(); });
  kept_bytes_ += arena->memory.size();
  kept_.insert(place, std::move(arena));
}

void SnapshotArenas::reserve(std::uint64_t bytes, std::uint64_t touched, unsigned count) {
  // All are taken before one is put back, or the same arena would be taken `count` times. A larger
  // one than asked for must not take the room of those that follow.
  const std::uint64_t each = format::align_up(bytes, kUnit);
  Kept arenas;
  arenas.reserve(count);
  const auto keep = [&]() noexcept {
    for (SharedArena& arena : arenas) release(std::move(arena));
  };
  try {
    while (arenas.size() < count) arenas.push_back(take(each, each * (count - 1 - arenas.size())));
  } catch (...) {
    keep();
    throw;
  }
  for (const SharedArena& arena : arenas) arena->reserved = std::max(arena->reserved, touched);
  keep();
}

SnapshotArenas::Kept::const_iterator SnapshotArenas::find_untouched() const noexcept {
  return std::find_if(kept_.begin(), kept_.end(),
                      [](const SharedArena& arena) { return arena->touched < arena->reserved; });
}

bool SnapshotArenas::has_untouched() const noexcept {
  return find_untouched() != kept_.end();
}

std::optional<SnapshotArenas::Untouched> SnapshotArenas::next_untouched(
    std::uint64_t most) noexcept {
  const auto found = find_untouched();
  if (found == kept_.end()) return std::nullopt;
  SnapshotArena& arena = **found;
  const std::uint64_t offset = arena.touched;
  // Counted as touched before they are: the next call goes on after them.
  arena.touched += std::min(most, arena.reserved - offset);
  return Untouched{*found, offset, arena.touched - offset};
}

}  // namespace thalia::container
