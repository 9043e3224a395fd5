// A few threads that run one job at a time, together with the caller.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace spiking {

/// Half-open range of neurons.
struct Slice {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Part `i` of `parts` of [0, count), cut at multiples of 64 so that no two threads write to one
/// cache line.
Slice slice_of(std::size_t count, unsigned parts, unsigned i);

/// Externally synchronised.
class Workers {
 public:
  /// 0: one a core.
  explicit Workers(unsigned count = 0);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  unsigned count() const noexcept { return static_cast<unsigned>(threads_.size()) + 1; }

  /// Calls job(0) … job(count() - 1) at once, and returns when all are done. Rethrows the first
  /// exception.
  void run(const std::function<void(unsigned)>& job);

 private:
  void work(unsigned index);
  void call(unsigned index);

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  const std::function<void(unsigned)>* job_ = nullptr;
  std::uint64_t round_ = 0;
  std::size_t running_ = 0;
  std::exception_ptr failure_;
  bool stop_ = false;
};

}  // namespace spiking
