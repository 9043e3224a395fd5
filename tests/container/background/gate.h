// Holds a background save in its middle, until the test lets it go on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "thalia/options.h"

namespace thalia::test {

/// Outlives the saves that pass it. Internally synchronised.
class Gate {
 public:
  /// Blocks the thread that reports the first progress; give it to Work::progress of a save that
  /// has more than one extent, so that something is left to do after the gate.
  Progress progress() {
    return [this](std::uint64_t, std::uint64_t) { pass(); };
  }
  void wait_until_reached() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  void pass() {
    std::unique_lock lock(mutex_);
    reached_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  bool open_ = false;
};

}  // namespace thalia::test
