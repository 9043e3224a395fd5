// std::exit destroys statics while background threads still run, and a save may use the library's
// own or those of others. So a handler cancels all saves and gives them a little time. It is
// registered after what saves use, and so runs before that is destroyed. The list keeps the queues
// that are watched alive.
#include "container/background/exit_guard.h"

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "container/background/queue.h"
#include "integrity/sha256.h"
#include "io/system/process.h"

namespace thalia::detail {
namespace {

// Long enough for an extent that is being written, or an fsync. Not forever: a callback may wait
// for the very thread that exits.
constexpr std::chrono::seconds kPatience{5};

struct Watched {
  std::mutex mutex;
  std::vector<std::shared_ptr<SaveQueue>> queues;
};

void cancel_all();

// Never destroyed: savers may be destroyed after it at exit, and ask for it.
Watched& watched() {
  static Watched* const instance = [] {
    // The cryptographic library cleans up at exit, too. Handlers run in the reverse order of their
    // registration, so it is made to register first.
    integrity::sha256({});
    auto made = std::make_unique<Watched>();
    io::hold_over_forks(made->mutex);
    if (std::atexit(cancel_all) != 0) throw std::bad_alloc();
    return made.release();
  }();
  return *instance;
}

void cancel_all() {
  std::vector<std::shared_ptr<SaveQueue>> queues;
  {
    const std::lock_guard lock(watched().mutex);
    // Cancelling calls on_done, which must find the lock free.
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
