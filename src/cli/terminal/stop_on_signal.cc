// The signals are blocked in all threads, and one thread waits for them with sigwait(). So a stop
// is requested by an ordinary thread, not by a signal handler, and may lock and allocate.
#include "cli/terminal/stop_on_signal.h"

#include <pthread.h>

#include "thalia/error.h"

namespace thalia::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// Global, as signals belong to the process. LetSignalsEnd raises g_waiting, then reads g_stopping;
// the listener sets g_stopping, then reads g_waiting. With sequentially consistent atomics at least
// one of the two sees the other, so that no wait is missed.
std::atomic<bool> g_stopping = false;
std::atomic<int> g_waiting = 0;
std::atomic<bool> g_pager_runs = false;

// Ends the process by the signal itself, so that its parent sees the right cause.
void end_by(int number) {
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, number);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::pthread_kill(::pthread_self(), number);
}

}  // namespace

StopOnSignal::StopOnSignal() {
  ::sigemptyset(&signals_);
  bool any = false;
  for (const int number : kSignals) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    ::sigaddset(&signals_, number);
    any = true;
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  if (any) listener_.emplace([this] { listen(); });
}

StopOnSignal::~StopOnSignal() {
  finished_ = true;
  if (listener_) {
    // One that it waits for, to itself: it looks at finished_ before it takes it for a real one.
    for (const int number : kSignals) {
      if (::sigismember(&signals_, number) != 1) continue;
      ::pthread_kill(listener_->native_handle(), number);
      break;
    }
    listener_->join();
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  if (caught_ != 0) ::raise(caught_);
}

void StopOnSignal::listen() {
  while (!finished_) {
    int number = 0;
    if (::sigwait(&signals_, &number) != 0 || finished_) continue;
    if (number == SIGINT && g_pager_runs) continue;
    // A second signal ends the process at once: something may hang. SIGHUP is left out, as a
    // terminal that closes may send it twice by itself.
    if (caught_ != 0 && number != SIGHUP) end_by(number);
    if (caught_ == 0) caught_ = number;
    g_stopping = true;
    stop_.request_stop();
    if (g_waiting > 0) end_by(number);
  }
}

void leave_interrupts_to_pager(bool runs) noexcept {
  g_pager_runs = runs;
}

LetSignalsEnd::LetSignalsEnd() {
  ++g_waiting;
  if (!g_stopping) return;
  --g_waiting;
  throw CancelledError(ErrorCode::cancelled, "ended by a signal");
}

LetSignalsEnd::~LetSignalsEnd() {
  --g_waiting;
}

}  // namespace thalia::cli
