// Work that several threads may ask for at once: one does it, and the others take what it gave,
// even if it is not kept. If it fails, one of those who wait tries again itself: an exception is
// not shared, because anybody who catches it may add to it. A forked child does anew what its
// parent was doing.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "io/system/process.h"
#include "thalia/error.h"

namespace thalia::formats::params {

template <typename Key, typename Value, typename Hash = std::hash<Key>>
class Flights {
 public:
  /// @param mutex of what is kept; outlives this.
  explicit Flights(io::ThreadLock& mutex) : mutex_(mutex) {}

  /// What kept() has, an optional value, or what make() gives, which keep(value) then gets. kept()
  /// and keep() are called with the mutex, make() without it. @return also whether this call made
  /// it. @throws what make() throws; UsageError (wrong_state) where make() asks for what it makes.
  template <typename Kept, typename Make, typename Keep>
  std::pair<Value, bool> once(const Key& key, const Kept& kept, const Make& make,
                              const Keep& keep) {
    const auto flight = std::make_shared<Flight>();
    {
      std::unique_lock lock(mutex_);
      while (true) {
        if (std::optional<Value> there = kept()) return {*std::move(there), false};
        const auto other = flights_.find(key);
        if (other == flights_.end() || !other->second->process.is_this()) break;
        const std::shared_ptr<Flight> theirs = other->second;
        if (theirs->thread == std::this_thread::get_id())
          throw UsageError(ErrorCode::wrong_state, "it is needed to make itself");
        lock.unlock();
        theirs->landed.wait(false);
        lock.lock();
        if (theirs->value) return {*theirs->value, false};
      }
      flights_.insert_or_assign(key, flight);
    }
    std::optional<Value> value;
    try {
      value = make();
    } catch (...) {
      land(key, *flight, [] {});
      throw;
    }
    land(key, *flight, [&] {
      flight->value = value;
      keep(*value);
    });
    return {*std::move(value), true};
  }

 private:
  struct Flight {
    io::OwnProcess process{};
    std::thread::id thread = std::this_thread::get_id();
    std::optional<Value> value{};  ///< once it has landed
    std::atomic<bool> landed{false};
  };

  // Wakes those who wait, whatever landed() throws.
  template <typename Landed>
  void land(const Key& key, Flight& flight, const Landed& landed) {
    const std::lock_guard lock(mutex_);
    flights_.erase(key);
    const auto wake = [&] {
      flight.landed = true;
      flight.landed.notify_all();
    };
    try {
      landed();
    } catch (...) {
      wake();
      throw;
    }
    wake();
  }

  io::ThreadLock& mutex_;
  std::unordered_map<Key, std::shared_ptr<Flight>, Hash> flights_;
};

}  // namespace thalia::formats::params
