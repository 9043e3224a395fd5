#include "store/follow/spare_memory.h"

#include <mutex>
#include <utility>

#include "format/extent.h"

namespace thalia::store {

void SpareMemory::keep(std::uint64_t bytes) {
  const std::lock_guard lock(lock_);
  most_ = bytes;
  while (kept_ > most_) {
    kept_ -= blocks_.begin()->first;
    blocks_.erase(blocks_.begin());
  }
}

std::shared_ptr<const MutableByteSpan> SpareMemory::take(std::uint64_t size) {
  const std::uint64_t rounded = format::align_up(size, io::kDirectAlignment);
  Block block;
  {
    const std::lock_guard lock(lock_);
    if (const auto found = blocks_.find(rounded); found != blocks_.end()) {
      block = std::move(found->second);
      blocks_.erase(found);
      kept_ -= rounded;
    }
  }
  if (!block) block = std::make_unique<io::AlignedBuffer>(rounded);
  struct Held {
    std::weak_ptr<SpareMemory> owner;
    Block block;
    MutableByteSpan bytes;
    ~Held() {
      if (const auto spare = owner.lock()) spare->put_back(std::move(block));
    }
  };
  auto held = std::make_shared<Held>();
  held->owner = weak_from_this();
  held->bytes = block->bytes().first(size);
  held->block = std::move(block);
  return {held, &held->bytes};
}

void SpareMemory::put_back(Block block) noexcept {
  try {
    const std::uint64_t size = block->bytes().size();
    const std::lock_guard lock(lock_);
    if (size > most_ || kept_ > most_ - size) return;
    blocks_.emplace(size, std::move(block));
    kept_ += size;
  } catch (const std::exception&) {
    // It goes: in a forked child, or where memory is short.
  }
}

}  // namespace thalia::store
