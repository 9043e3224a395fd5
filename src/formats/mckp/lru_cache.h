// Values by key. When there is no more room, the values that were used longest ago go first.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "io/system/process.h"

namespace thalia::formats {

/// Internally synchronised. @throws as io::ThreadLock::lock().
template <typename Value>
class LruCache {
 public:
  explicit LruCache(std::uint64_t room) : room_(room) {}

  std::optional<Value> find(std::string_view key) {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(std::string(key));
    if (found == places_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->value;
  }

  /// Replaces the value of that key. A value that costs more than all the room is not kept.
  void put(std::string_view key, Value value, std::uint64_t cost) {
    const std::lock_guard lock(mutex_);
    remove(std::string(key));
    if (cost > room_) return;
    while (used_ > room_ - cost) remove(std::string(entries_.back().key));
    entries_.push_front({std::string(key), std::move(value), cost});
    places_[entries_.front().key] = entries_.begin();
    used_ += cost;
  }

  void erase(std::string_view key) {
    const std::lock_guard lock(mutex_);
    remove(std::string(key));
  }

 private:
  struct Entry {
    std::string key;
    Value value;
    std::uint64_t cost;
  };

  void remove(const std::string& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return;
    used_ -= found->second->cost;
    entries_.erase(found->second);
    places_.erase(found);
  }

  io::ThreadLock mutex_;
  std::uint64_t room_;
  std::uint64_t used_ = 0;
  std::list<Entry> entries_;  ///< the one used last is first
  std::unordered_map<std::string, typename std::list<Entry>::iterator> places_;
};

}  // namespace thalia::formats
