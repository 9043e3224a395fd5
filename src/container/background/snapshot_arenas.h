// Memory for snapshots, kept from save to save. Memory that was used before causes no page faults;
// memory that was reserved has its pages before it is used.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "format/extent.h"
#include "io/memory/anonymous_memory.h"

namespace thalia::container {

/// The memory of one snapshot. Shared, since a save may take it while a page of it is touched.
struct SnapshotArena {
  explicit SnapshotArena(std::uint64_t bytes) : memory(bytes) {}

  const io::AnonymousMemory memory;
  // Known to the arenas alone:
  std::uint64_t touched = 0;   ///< from its start on: pages that are there, or on their way
  std::uint64_t reserved = 0;  ///< from its start on: pages that are to be there
};
using SharedArena = std::shared_ptr<SnapshotArena>;

/// Externally synchronised.
class SnapshotArenas {
 public:
  /// Arenas are multiples of this: whole pages on every machine.
  static constexpr std::uint64_t kUnit = 64 << 10;

  /// @param bound the most bytes of all arenas together, in use and kept; rounded up.
  explicit SnapshotArenas(std::uint64_t bound) : bound_(format::align_up(bound, kUnit)) {}

  /// True if acquire(), `count` times, stays within the bound, given what is in use.
  bool fits(std::uint64_t bytes, unsigned count = 1) const noexcept {
    return bytes <= bound_ && format::align_up(bytes, kUnit) <= (bound_ - in_use_) / count;
  }
  /// The smallest kept arena that holds `bytes`; else a new one, for which smaller ones make room.
  /// The caller is going to touch `bytes`. Null for 0. fits(bytes) holds. @throws IoError.
  SharedArena acquire(std::uint64_t bytes);
  void release(SharedArena arena) noexcept;
  /// Keeps `count` arenas of at least `bytes`, of which `touched` are to be there before they are
  /// acquired. fits(bytes, count) holds. @throws IoError.
  void reserve(std::uint64_t bytes, std::uint64_t touched, unsigned count);

  /// Pages to touch.
  struct Untouched {
    SharedArena arena;
    std::uint64_t offset;
    std::uint64_t length;
  };
  /// The next pages that are reserved, `most` bytes of them or less, and those after them the next
  /// time; nullopt if all are there or on their way.
  std::optional<Untouched> next_untouched(std::uint64_t most) noexcept;
  bool has_untouched() const noexcept;

  /// The bytes of all arenas together.
  std::uint64_t held() const noexcept { return in_use_ + kept_bytes_; }
  std::uint64_t bound() const noexcept { return bound_; }

 private:
  using Kept = std::vector<SharedArena>;
  SharedArena take(std::uint64_t bytes, std::uint64_t others);
  SharedArena take(Kept::iterator kept);
  Kept::const_iterator find_untouched() const noexcept;

  std::uint64_t bound_;
  std::uint64_t in_use_ = 0;
  std::size_t arenas_in_use_ = 0;
  std::uint64_t kept_bytes_ = 0;
  Kept kept_;  ///< by size; has room for those in use
};

}  // namespace thalia::container
