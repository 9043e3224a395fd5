// Signals for a program that has to tidy up first.
#pragma once

#include <signal.h>

#include <atomic>
#include <optional>
#include <stop_token>
#include <thread>

namespace thalia::cli {

/// While it lives, SIGINT, SIGTERM and SIGHUP (unless they are ignored) request a stop instead of
/// ending the process; its destructor then ends the process by the signal that came. A second
/// SIGINT or SIGTERM ends it at once. Create it before any other thread, since that would receive
/// the signals otherwise, and as the first object of its scope: what is destroyed before it has
/// been tidied up.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  std::stop_token token() const noexcept { return stop_.get_token(); }

 private:
  void listen();

  sigset_t signals_;
  sigset_t before_;
  std::stop_source stop_;
  std::atomic<int> caught_ = 0;
  std::atomic<bool> finished_ = false;
  std::optional<std::thread> listener_;  ///< none if all of them are ignored
};

/// While a pager runs, SIGINT is for it, and for nobody else.
void leave_interrupts_to_pager(bool runs) noexcept;

/// Surrounds a call that may wait for ever (a pipe that nobody reads) while there is nothing to
/// tidy up: a signal that comes meanwhile ends the process at once.
class LetSignalsEnd {
 public:
  /// @throws CancelledError if one has come already.
  LetSignalsEnd();
  ~LetSignalsEnd();
  LetSignalsEnd(const LetSignalsEnd&) = delete;
  LetSignalsEnd& operator=(const LetSignalsEnd&) = delete;
};

}  // namespace thalia::cli
