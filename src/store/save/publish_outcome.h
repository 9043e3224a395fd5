// What the handles of a state that is published in the background share.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "io/system/process.h"
#include "thalia/async_save.h"
#include "thalia/options.h"
#include "thalia/store/publish.h"

namespace thalia::store {

class PublishOutcome final : public detail::SaveOutcome<PublishedState> {
 public:
  /// @param work as the caller has it.
  explicit PublishOutcome(Work work) : work_(std::move(work)) {
    linked_.emplace(work_.cancel, [this] { stop_.request_stop(); });
  }

  /// The work with the handles' cancel() and progress().
  Work work() {
    Work own = work_;
    own.cancel = stop_.get_token();
    own.progress = [this](std::uint64_t done, std::uint64_t total) {
      done_ = done;
      total_ = total;
      if (work_.progress) work_.progress(done, total);
    };
    return own;
  }

  /// On the thread that publishes.
  template <typename Publish>
  void run(const Publish& publish) noexcept {
    std::optional<PublishedState> made;
    std::exception_ptr error;
    try {
      stop_if_cancelled(stop_.get_token());
      made = publish();
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      if (made) result_ = *std::move(made);
      error_ = std::move(error);
      has_ended_ = true;
    }
    ended_.notify_all();
  }

  SaveProgress progress() const noexcept override { return {done_, total_}; }
  bool done() const override {
    if (has_ended_) return true;
    process_.require("what is published");
    return false;
  }
  bool skipped() const noexcept override { return false; }
  PublishedState wait() override {
    if (!done()) {
      std::unique_lock lock(mutex_);
      ended_.wait(lock, [&] { return has_ended_.load(); });
    }
    if (error_) std::rethrow_exception(error_);
    return result_;
  }
  bool wait_for(std::chrono::nanoseconds time) override {
    if (done()) return true;
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, time, [&] { return has_ended_.load(); });
  }
  void cancel() override { stop_.request_stop(); }
  std::exception_ptr see_error() noexcept override { return has_ended_ ? error_ : nullptr; }

 private:
  const Work work_;
  std::stop_source stop_;
  std::optional<std::stop_callback<std::function<void()>>> linked_;
  std::atomic<std::uint64_t> done_{0}, total_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  std::atomic<bool> has_ended_{false};  ///< what is below stays from then on, and needs no lock
  PublishedState result_;
  std::exception_ptr error_;
  const io::OwnProcess process_{};
};

}  // namespace thalia::store
