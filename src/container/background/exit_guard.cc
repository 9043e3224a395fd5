#include "container/background/exit_guard.h"

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "container/background/queue.h"
#include "integrity/sha256.h"

namespace thalia::detail {
namespace {

// For an extent that is being written, or an fsync; not for a callback that waits for the very
// thread that exits.
constexpr std::chrono::seconds kPatience{5};

struct Watched {
  std::mutex mutex;
  std::vector<std::shared_ptr<SaveQueue>> queues;
};

void cancel_all();

// Never destroyed, so that it can be asked at any time of the exit.
Watched& watched() {
  static Watched* const instance = [] {
    // The cryptographic library cleans up at exit too. What is registered first runs last.
    integrity::sha256({});
    auto made = std::make_unique<Watched>();
    if (std::atexit(cancel_all) != 0) throw std::bad_alloc();
    return made.release();
  }();
  return *instance;
}

void cancel_all() {
  std::vector<std::shared_ptr<SaveQueue>> queues;
  {
    const std::lock_guard lock(watched().mutex);
    queues.swap(watched().queues);
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (const auto& queue : queues) queue->cancel_all(deadline);
  // Kept: a thread may be left that uses its queue, and a forked child cannot destroy one.
  const std::lock_guard lock(watched().mutex);
  queues.swap(watched().queues);
}

}  // namespace

void watch_at_exit(std::shared_ptr<SaveQueue> queue) {
  Watched& all = watched();
  const std::lock_guard lock(all.mutex);
  all.queues.push_back(std::move(queue));
}

void unwatch_at_exit(const SaveQueue& queue) noexcept {
  Watched& all = watched();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.queues, [&](const auto& candidate) { return candidate.get() == &queue; });
}

}  // namespace thalia::detail
