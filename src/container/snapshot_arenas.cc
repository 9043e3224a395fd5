#include "container/snapshot_arenas.h"

#include <algorithm>
#include <utility>

namespace thalia::container {

io::AnonymousMemory SnapshotArenas::take(std::vector<io::AnonymousMemory>::iterator kept) {
  io::AnonymousMemory arena = std::move(*kept);
  kept_.erase(kept);
  kept_bytes_ -= arena.size();
  return arena;
}

io::AnonymousMemory SnapshotArenas::acquire(std::uint64_t bytes) {
  if (bytes == 0) return {};
  kept_.reserve(kept_.size() + arenas_in_use_ + 1);  // so that release() cannot fail
  const auto fitting = std::lower_bound(
      kept_.begin(), kept_.end(), bytes,
      [](const io::AnonymousMemory& arena, std::uint64_t size) { return arena.size() < size; });
  io::AnonymousMemory arena;
  if (fitting != kept_.end()) {
    arena = take(fitting);
  } else {
    // The largest has been outgrown; what else is kept may stand in the bound's way.
    if (!kept_.empty()) take(kept_.end() - 1);
    while (!kept_.empty() && held() + bytes > bound_) take(kept_.begin());
    arena = io::AnonymousMemory(bytes);
  }
  in_use_ += arena.size();
  ++arenas_in_use_;
  return arena;
}

void SnapshotArenas::release(io::AnonymousMemory arena) noexcept {
  if (arena.size() == 0) return;
  in_use_ -= arena.size();
  --arenas_in_use_;
  const auto place = std::upper_bound(
      kept_.begin(), kept_.end(), arena.size(),
      [](std::uint64_t size, const io::AnonymousMemory& kept) { return size < kept.size(); });
  kept_bytes_ += arena.size();
  kept_.insert(place, std::move(arena));
}

}  // namespace thalia::container
