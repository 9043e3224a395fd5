// Finds which of many things has a name, where the names are kept with the things.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace thalia::container {

/// Places of things in a list by the hashes of their names: 8 bytes a slot and no memory for a
/// name, since a state of many small tensors is declared while the training waits. Places are
/// those of the list, so the table stays true where the list is moved. Externally synchronised.
class NameTable {
 public:
  static std::uint32_t hash_of(std::string_view name) noexcept {
    const std::size_t hash = std::hash<std::string_view>()(name);
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
  }
  /// Fetches what contains() will look at: the table of a large state is in no cache.
  void prefetch(std::uint32_t hash) const noexcept {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & mask()]);
  }
  /// @param has_name takes a place, and says whether the name is the one of the thing there.
  template <typename HasName>
  bool contains(std::uint32_t hash, HasName has_name) const {
    if (slots_.empty()) return false;
    for (std::size_t i = hash & mask(); slots_[i].place != kNone; i = (i + 1) & mask()) {
      if (slots_[i].hash == hash && has_name(slots_[i].place)) return true;
    }
    return false;
  }
  /// The name is not there yet.
  void insert(std::uint32_t hash, std::uint32_t place) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    put({hash, place});
    ++count_;
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  static constexpr std::size_t kFirstSlots = 16;
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t place = kNone;
  };

  std::size_t mask() const noexcept { return slots_.size() - 1; }
  void put(Slot slot) noexcept {
    std::size_t i = slot.hash & mask();
    while (slots_[i].place != kNone) i = (i + 1) & mask();
    slots_[i] = slot;
  }
  void grow() {
    const std::vector<Slot> before = std::move(slots_);
    slots_ = std::vector<Slot>(before.empty() ? kFirstSlots : 2 * before.size());
    for (const Slot& slot : before) {
      if (slot.place != kNone) put(slot);
    }
  }

  std::vector<Slot> slots_;  ///< a power of two, half of them empty
  std::size_t count_ = 0;
};

}  // namespace thalia::container
