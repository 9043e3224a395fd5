// What threads work with, handed on from one piece of a tensor to the next.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "io/system/process.h"

namespace thalia::state {

/// Things that keep their memory: as many as are at work at a time.
template <typename Thing>
class Spares {
 public:
  /// One that was given back, or else a new one.
  template <typename Make>
  std::unique_ptr<Thing> take(const Make& make) {
    {
      const std::lock_guard lock(lock_);
      if (!things_.empty()) {
        std::unique_ptr<Thing> thing = std::move(things_.back());
        things_.pop_back();
        return thing;
      }
    }
    return make();
  }
  void give(std::unique_ptr<Thing> thing) {
    const std::lock_guard lock(lock_);
    things_.push_back(std::move(thing));
  }
  /// Once nobody works any more.
  const std::vector<std::unique_ptr<Thing>>& all() const noexcept { return things_; }

 private:
  io::ThreadLock lock_;
  std::vector<std::unique_ptr<Thing>> things_;
};

}  // namespace thalia::state
