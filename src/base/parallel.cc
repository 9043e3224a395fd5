// Threads are made for each call and joined at its end: nothing runs between calls, and nothing has
// to be shut down. The caller's thread works too, so the jobs are done even if no thread can be
// had.
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace thalia {

unsigned resolve_threads(unsigned threads, std::uint64_t jobs) noexcept {
  // Asked for once: the C library reads it from a file each time, which costs more than a small
  // job.
  static const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
  if (threads == 0) threads = cores;
  threads = std::min(threads, std::max(kMostThreads, cores));
  return static_cast<unsigned>(std::clamp<std::uint64_t>(jobs, 1, threads));
}

void parallel_for(std::size_t count, unsigned threads,
                  const std::function<void(std::size_t)>& job) {
  const std::size_t workers = resolve_threads(threads, count);
  if (workers == 1) {
    for (std::size_t i = 0; i < count; ++i) job(i);
    return;
  }
  std::atomic<std::size_t> next{0};
  // The error of the job with the lowest number. Jobs begin in order, so all with a lower number
  // have begun by then and end before the threads are joined: the same work gives the same error,
  // however the threads take turns.
  std::exception_ptr first_error;
  std::size_t failed = count;
  std::mutex error_mutex;
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
      try {
        job(i);
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (i < failed) {
          failed = i;
          first_error = std::current_exception();
        }
        next.store(count, std::memory_order_relaxed);
      }
    }
  };
  {
    std::vector<std::jthread> pool;
    pool.reserve(workers - 1);
    try {
      for (std::size_t i = 1; i < workers; ++i) pool.emplace_back(work);
    } catch (const std::system_error&) {
      // The system gives no more threads; those that run do the work.
    }
    work();
  }
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace thalia
