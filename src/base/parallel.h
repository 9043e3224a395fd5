// Running a bounded number of independent jobs on a bounded number of threads.
#pragma once

#include <cstddef>
#include <functional>

namespace thalia {

/// `threads` as asked for, or one a core for 0; at least 1.
unsigned resolve_threads(unsigned threads) noexcept;

/// Calls job(i) once for every i in [0, count) on up to `threads` threads, the caller's among them,
/// and returns when all are done. Jobs are handed out in order. After a job throws no further one
/// starts, and the first exception is rethrown.
void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& job);

}  // namespace thalia
