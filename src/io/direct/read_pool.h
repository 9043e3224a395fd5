// Reads by threads that wait for them. They keep the queue of a disk busy without io_uring.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "thalia/types.h"

namespace thalia::io {

/// Externally synchronised: used by one thread. Destroyed with reads in flight, it waits for them.
class ReadPool {
 public:
  /// Starts as many threads as reads may be in flight, or as many as the system allows. @throws
  /// IoError where it allows none.
  explicit ReadPool(unsigned threads);
  ~ReadPool();
  ReadPool(const ReadPool&) = delete;
  ReadPool& operator=(const ReadPool&) = delete;

  void read(int fd, std::uint64_t offset, MutableByteSpan out, std::uint64_t tag);

  struct Completion {
    std::uint64_t tag;
    std::int64_t result;  ///< bytes read, or -errno
  };
  /// Waits for one read to end. At least one is in flight.
  Completion wait();

 private:
  struct Job {
    int fd;
    std::uint64_t offset;
    MutableByteSpan out;
    std::uint64_t tag;
  };
  void work();

  std::mutex mutex_;
  std::condition_variable wanted_;
  std::condition_variable done_;
  std::deque<Job> jobs_;
  std::deque<Completion> completions_;
  bool ending_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace thalia::io
