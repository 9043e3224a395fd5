#include "support/fault.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <exception>
#include <ostream>
#include <stdexcept>
#include <utility>

#include "thalia/error.h"

namespace thalia::test {
namespace {

// The child's exit codes. Anything else is an end that the work chose or a sanitizer's.
constexpr int kReturned = 40;
constexpr int kIoError = 41;
constexpr int kOtherError = 42;
constexpr int kNoFilter = 43;

// Classic BPF looks at 32 bits at a time; jumps count instructions that are left out.
class FilterBuilder {
 public:
  void add(const Fault& fault) {
    load(offsetof(seccomp_data, nr));
    std::vector<std::size_t> exits = {jump_unless(BPF_JEQ, static_cast<std::uint32_t>(fault.call))};
    if (fault.when) {
      const std::uint32_t low = static_cast<std::uint32_t>(fault.when->value);
      const std::uint32_t high = static_cast<std::uint32_t>(fault.when->value >> 32);
      const std::size_t argument = offsetof(seccomp_data, args) + 8 * fault.when->index;
      constexpr bool kLittle = std::endian::native == std::endian::little;
      const std::size_t low_word = argument + (kLittle ? 0 : 4);
      const std::size_t high_word = argument + (kLittle ? 4 : 0);
      if (fault.when->kind == ArgumentCondition::Kind::at_least) {
        load(high_word);
        // Greater: straight to the action after the next three. Equal: the low word decides.
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, high, 3, 0));
        exits.push_back(jump_unless(BPF_JEQ, high));
        load(low_word);
        exits.push_back(jump_unless(BPF_JGE, low));
      } else {
        const bool masked = fault.when->kind == ArgumentCondition::Kind::has_bits;
        for (const auto& [word, bits] : {std::pair(low_word, low), std::pair(high_word, high)}) {
          load(word);
          if (masked) code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
          exits.push_back(jump_unless(BPF_JEQ, bits));
        }
      }
    }
    const std::uint32_t errno_bits = static_cast<std::uint32_t>(fault.errno_value);
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, fault.errno_value == 0
                                                  ? SECCOMP_RET_KILL_PROCESS
                                                  : SECCOMP_RET_ERRNO | errno_bits));
    for (const std::size_t from : exits)
      code_[from].jf = static_cast<std::uint8_t>(code_.size() - from - 1);
  }

  bool install() {
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog program = {static_cast<unsigned short>(code_.size()), code_.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

 private:
  void load(std::size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  }
  std::size_t jump_unless(unsigned test, std::uint32_t value) {
    code_.push_back(BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), value, 0, 0));
    return code_.size() - 1;
  }
  std::vector<sock_filter> code_;
};

void report(int fd, int errno_value, const std::string& message) {
  std::string text(sizeof(errno_value), '\0');
  std::memcpy(text.data(), &errno_value, sizeof(errno_value));
  text += message;
  if (::write(fd, text.data(), text.size()) < 0) ::_exit(kOtherError);
}

[[noreturn]] void run_child(int fd, const std::vector<Fault>& faults,
                            const std::function<void()>& work) {
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (!faults.empty() && !install_faults(faults)) {
    report(fd, errno, std::string("no seccomp filter: ") + std::strerror(errno));
    ::_exit(kNoFilter);
  }
  int code = kReturned;
  try {
    work();
  } catch (const IoError& error) {
    report(fd, error.errno_value(), error.what());
    code = kIoError;
  } catch (const std::exception& error) {
    report(fd, 0, error.what());
    code = kOtherError;
  } catch (...) {
    report(fd, 0, "an exception of unknown type");
    code = kOtherError;
  }
  ::_exit(code);
}

std::string read_to_end(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got > 0)
      text.append(buffer, static_cast<std::size_t>(got));
    else if (got == 0 || errno != EINTR)
      return text;
  }
}

}  // namespace

Outcome run_with_faults(const std::vector<Fault>& faults, const std::function<void()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe for the child's report");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no fork");
  if (child == 0) {
    ::close(ends[0]);
    run_child(ends[1], faults, work);
  }
  ::close(ends[1]);
  const std::string text = read_to_end(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }

  Outcome outcome{Outcome::Kind::other_error, 0, {}};
  if (text.size() >= sizeof(int)) {
    std::memcpy(&outcome.errno_value, text.data(), sizeof(int));
    outcome.message = text.substr(sizeof(int));
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    outcome.message = "killed by signal " + std::to_string(signal);
    if (signal == SIGSYS || signal == SIGKILL) outcome.kind = Outcome::Kind::killed;
  } else if (WEXITSTATUS(status) == kNoFilter) {
    throw std::runtime_error(outcome.message);
  } else if (WEXITSTATUS(status) == kReturned) {
    outcome.kind = Outcome::Kind::returned;
  } else if (WEXITSTATUS(status) == kIoError) {
    outcome.kind = Outcome::Kind::io_error;
  } else if (WEXITSTATUS(status) != kOtherError) {
    outcome.message = "exit code " + std::to_string(WEXITSTATUS(status));
  }
  return outcome;
}

bool install_faults(const std::vector<Fault>& faults) {
  FilterBuilder filter;
  for (const Fault& fault : faults) filter.add(fault);
  return filter.install();
}

std::ostream& operator<<(std::ostream& out, Outcome::Kind kind) {
  switch (kind) {
    case Outcome::Kind::returned:
      return out << "returned";
    case Outcome::Kind::io_error:
      return out << "io_error";
    case Outcome::Kind::other_error:
      return out << "other_error";
    case Outcome::Kind::killed:
      return out << "killed";
  }
  return out;
}

}  // namespace thalia::test
