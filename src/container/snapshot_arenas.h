// Memory for snapshots, kept from save to save: one that is used again faults no pages.
#pragma once

#include <cstdint>
#include <vector>

#include "io/anonymous_memory.h"

namespace thalia::container {

/// Externally synchronised.
class SnapshotArenas {
 public:
  /// @param bound on the bytes of all arenas together, those in use and those kept, in whole pages.
  explicit SnapshotArenas(std::uint64_t bound) : bound_(bound) {}

  /// True where acquire() stays within the bound, given what is in use.
  bool fits(std::uint64_t bytes) const noexcept { return bytes <= bound_ - in_use_; }
  /// The smallest kept arena that holds `bytes`, else a new one, for which smaller ones make room.
  /// Empty for 0. fits(bytes) holds. @throws IoError.
  io::AnonymousMemory acquire(std::uint64_t bytes);
  void release(io::AnonymousMemory arena) noexcept;

  /// Of all arenas together.
  std::uint64_t held() const noexcept { return in_use_ + kept_bytes_; }
  std::uint64_t bound() const noexcept { return bound_; }

 private:
  io::AnonymousMemory take(std::vector<io::AnonymousMemory>::iterator kept);

  std::uint64_t bound_;
  std::uint64_t in_use_ = 0;
  std::size_t arenas_in_use_ = 0;
  std::uint64_t kept_bytes_ = 0;
  std::vector<io::AnonymousMemory> kept_;  ///< by size; has room for those in use
};

}  // namespace thalia::container
