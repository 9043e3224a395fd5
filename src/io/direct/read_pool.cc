// A queue of jobs, threads that take from it, a queue of completions; mutex_ guards all three, and
// no pread() runs under it. Whoever destroys the pool waits for reads that have begun, because they
// write into the caller's memory; reads that have not begun are dropped. threads_ is the last
// member: its threads are joined before what they use goes.
#include "io/direct/read_pool.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "io/system/posix_error.h"

namespace thalia::io {

ReadPool::ReadPool(unsigned threads) {
  threads_.reserve(threads);
  try {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    // Fewer threads read more slowly.
    if (threads_.empty()) throw_errno("pthread_create", {}, {}, error.code().value());
  }
}

ReadPool::~ReadPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    jobs_.clear();
  }
  // The threads are joined when threads_ is destroyed, right behind this.
  wanted_.notify_all();
}

void ReadPool::read(int fd, std::uint64_t offset, MutableByteSpan out, std::uint64_t tag) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({fd, offset, out, tag});
  }
  wanted_.notify_one();
}

ReadPool::Completion ReadPool::wait() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return !completions_.empty(); });
  const Completion completion = completions_.front();
  completions_.pop_front();
  return completion;
}

void ReadPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    // Woken without a job: the pool is ending.
    if (jobs_.empty()) return;
    const Job job = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    const auto got = retry_interrupted([&] {
      return ::pread(job.fd, job.out.data(), job.out.size(), static_cast<off_t>(job.offset));
    });
    // errno belongs to the thread, so it is passed on by value.
    const std::int64_t result = got < 0 ? -std::int64_t{errno} : std::int64_t{got};
    lock.lock();
    completions_.push_back({job.tag, result});
    done_.notify_one();
  }
}

}  // namespace thalia::io
