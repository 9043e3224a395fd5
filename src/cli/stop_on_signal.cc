#include "cli/stop_on_signal.h"

#include <pthread.h>

#include <ctime>

namespace thalia::cli {
namespace {

// How long the listener takes to notice that it is not needed any more.
constexpr timespec kPatience{.tv_sec = 0, .tv_nsec = 50'000'000};

}  // namespace

StopOnSignal::StopOnSignal() {
  ::sigemptyset(&signals_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      ::sigaddset(&signals_, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  listener_ = std::jthread([this](const std::stop_token& finished) {
    while (!finished.stop_requested() && caught_ == 0) {
      if (const int number = ::sigtimedwait(&signals_, nullptr, &kPatience); number > 0) {
        caught_ = number;
        stop_.request_stop();
      }
    }
  });
}

StopOnSignal::~StopOnSignal() {
  listener_.request_stop();
  listener_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  if (caught_ != 0) ::raise(caught_);
}

}  // namespace thalia::cli
