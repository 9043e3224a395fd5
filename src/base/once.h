// Once: work that is done when it is first needed, whichever thread needs it.
#pragma once

#include <atomic>
#include <mutex>

namespace thalia {

/// Stands for std::call_once, which ThreadSanitizer does not know to end by an exception: after
/// work that throws, as on a damaged file, the next call would wait for good.
class Once {
 public:
  /// Back when `work` was done, by this call or another, and what it wrote may be read. Where it
  /// throws, this call throws the same, and the next one tries again.
  template <typename Work>
  void run(const Work& work) {
    if (done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    work();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> done_{false};
  std::mutex mutex_;
};

}  // namespace thalia
