// Running a bounded number of independent jobs on a bounded number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace thalia {

/// How many threads to start for an option that asks for `threads`: that many, or one a core for 0;
/// at least 1; no more than there are jobs; and at most kMostThreads, or the number of cores if
/// that is more. Used wherever threads are started.
unsigned resolve_threads(unsigned threads, std::uint64_t jobs = UINT64_MAX) noexcept;
inline constexpr unsigned kMostThreads = 256;

/// What Work::memory_bytes is if neither the caller nor the call says otherwise.
inline constexpr std::uint64_t kDefaultMemoryBytes = 128ull << 20;

/// Calls job(i) once for every i in [0, count) on up to `threads` threads, the caller's among them,
/// and returns when all are done. Jobs are handed out in order. After a job throws no further one
/// starts, and the exception of the job with the lowest number is rethrown: the same whatever the
/// threads do.
void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& job);

}  // namespace thalia
