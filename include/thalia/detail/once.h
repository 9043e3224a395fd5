// What is made once, whichever thread asks first, and the lock of what forked children go on using.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

// ThreadLock: a mutex of what a forked child goes on using.

namespace thalia::detail {

/// The lock of what reads, as a file that is open is used in forked children too. As std::mutex,
/// but: where a process was forked while another thread of it held the lock, the child has that
/// state and not the thread, and would wait for good. There lock() throws UsageError (wrong_state).
/// What the parent's thread was about to fill is half filled.
class ThreadLock {
 public:
  ThreadLock() = default;
  ThreadLock(const ThreadLock&) = delete;
  ThreadLock& operator=(const ThreadLock&) = delete;

  void lock();
  void unlock() noexcept {
    holder_.store(0, std::memory_order_release);
    holder_.notify_one();
  }

 private:
  std::atomic<int> holder_{0};  ///< the process whose thread has it; 0: nobody
};

}  // namespace thalia::detail

namespace thalia {

// Lazy: a value that is made when it is first asked for, once, whichever thread asks.

/// Const access is safe from any number of threads: the first makes the value, the others wait.
/// Changes, copies and moves are externally synchronised against changes of the same object; a copy
/// of what was not made yet is made on its own.
template <typename T>
class Lazy {
 public:
  using Maker = std::function<T()>;

  Lazy() : is_made_(true) {}
  explicit Lazy(T value) : value_(std::move(value)), is_made_(true) {}
  explicit Lazy(Maker make) : make_(std::move(make)) {}

  Lazy(const Lazy& other) {
    const std::lock_guard lock(other.mutex_);
    value_ = other.value_;
    make_ = other.make_;
    is_made_ = other.is_made_.load();
  }
  Lazy(Lazy&& other) noexcept
      : value_(std::move(other.value_)),
        make_(std::move(other.make_)),
        is_made_(other.is_made_.load()) {
    other.make_ = nullptr;
    other.is_made_ = true;
  }
  Lazy& operator=(Lazy other) noexcept {
    value_ = std::move(other.value_);
    make_ = std::move(other.make_);
    is_made_ = other.is_made_.load();
    return *this;
  }
  ~Lazy() = default;

  bool is_made() const noexcept { return is_made_.load(std::memory_order_acquire); }

  /// Where making it throws, the access throws the same, and the next one tries again. @throws
  /// UsageError (wrong_state) as ThreadLock::lock(), in a forked child.
  const T& get() const {
    if (is_made()) return value_;
    const std::lock_guard lock(mutex_);
    if (!is_made_.load(std::memory_order_relaxed)) {
      value_ = make_();
      make_ = nullptr;  // and with it what it holds on to
      is_made_.store(true, std::memory_order_release);
    }
    return value_;
  }
  T& get() { return const_cast<T&>(std::as_const(*this).get()); }

 private:
  mutable T value_{};
  mutable Maker make_;
  mutable std::atomic<bool> is_made_ = false;
  mutable detail::ThreadLock mutex_;
};

}  // namespace thalia
