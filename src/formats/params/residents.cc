// After each call bytes_ is the sum of what is kept, and at most the budget where there is one. So
// pinned bytes are at most the budget too, and evicting all others always makes the room that
// would_keep() has seen.
#include "formats/params/residents.h"

#include <utility>

namespace thalia::formats::params {

const Tensor* Residents::use(std::size_t number) {
  const auto found = kept_.find(number);
  if (found == kept_.end()) return nullptr;
  Kept& kept = found->second;
  if (kept.use) uses_.splice(uses_.end(), uses_, *kept.use);
  return &kept.tensor;
}

bool Residents::would_keep(std::uint64_t bytes, bool pinned) const noexcept {
  if (!budget_) return pinned;
  return bytes <= *budget_ - pinned_bytes_;
}

void Residents::evict_oldest() {
  const auto oldest = kept_.find(uses_.front());
  bytes_ -= oldest->second.tensor.bytes().size();
  ++evictions_;
  kept_.erase(oldest);
  uses_.pop_front();
}

void Residents::keep(std::size_t number, const Tensor& tensor, bool pinned) {
  const std::uint64_t bytes = tensor.bytes().size();
  if (!would_keep(bytes, pinned) || holds(number)) return;
  while (budget_ && bytes > *budget_ - bytes_) evict_oldest();
  // Where memory ends on the way, nothing is counted that is not there.
  const auto place = kept_.emplace(number, Kept{.tensor = tensor, .use = {}}).first;
  if (!pinned) {
    try {
      place->second.use = uses_.insert(uses_.end(), number);
    } catch (...) {
      kept_.erase(place);
      throw;
    }
  }
  bytes_ += bytes;
  if (pinned) pinned_bytes_ += bytes;
}

}  // namespace thalia::formats::params
