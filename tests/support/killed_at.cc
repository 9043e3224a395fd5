#include "support/killed_at.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

namespace thalia::test {
namespace {

constexpr int kSurvived = 40;
constexpr int kFailed = 41;
constexpr int kNotTraced = 42;

[[noreturn]] void run_child(const std::function<void()>& work) {
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(kNotTraced);
  ::raise(SIGSTOP);  // the parent counts from here
  try {
    work();
  } catch (...) {
    ::_exit(kFailed);
  }
  ::_exit(kSurvived);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

End end_of(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotTraced)
    throw std::runtime_error("no tracing of child processes");
  return WIFEXITED(status) && WEXITSTATUS(status) == kSurvived ? End::returned : End::failed;
}

}  // namespace

End run_stopped(const std::function<bool(unsigned)>& at_call, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no fork");
  if (child == 0) run_child(work);
  int status = wait_for(child);
  if (!WIFSTOPPED(status)) return end_of(status);
  constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
  if (::ptrace(PTRACE_SETOPTIONS, child, nullptr, kOptions) != 0) {
    ::kill(child, SIGKILL);
    wait_for(child);
    throw std::runtime_error("no tracing of system calls");
  }
  // A stop at the entry and one at the return of each call.
  long signal = 0;
  for (unsigned stops = 0;;) {
    if (::ptrace(PTRACE_SYSCALL, child, nullptr, signal) != 0) return end_of(wait_for(child));
    status = wait_for(child);
    if (!WIFSTOPPED(status)) return end_of(status);
    const bool is_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    signal = is_call ? 0 : WSTOPSIG(status);
    if (!is_call) continue;
    const unsigned stop = stops++;
    if (stop % 2 != 0 || at_call(stop / 2)) continue;
    ::kill(child, SIGKILL);
    wait_for(child);
    return End::killed;
  }
}

End run_killed_at(unsigned number, const std::function<void()>& work) {
  return run_stopped([&](unsigned call) { return call != number; }, work);
}

}  // namespace thalia::test
