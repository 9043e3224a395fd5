// Ctrl-C for a command that has to tidy up first.
#pragma once

#include <signal.h>

#include <atomic>
#include <stop_token>
#include <thread>

namespace thalia::cli {

/// While it lives, SIGINT, SIGTERM and SIGHUP (unless they are ignored) request a stop instead of
/// ending the process. It comes before every other thread of the process, which would receive the
/// signals otherwise; its destructor ends the process by the signal that came, if one did, so it is
/// the first thing in its scope.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  std::stop_token token() const noexcept { return stop_.get_token(); }

 private:
  sigset_t signals_;
  sigset_t before_;
  std::stop_source stop_;
  std::atomic<int> caught_ = 0;
  std::jthread listener_;
};

}  // namespace thalia::cli
