// System calls that pass the C library's functions by: a filter has the kernel send a signal in
// their place, and the signal's handler calls the function that is recorded.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "crash/recorder/recorder.h"

#if defined(__x86_64__)

using namespace thalia::crash;

namespace {

constexpr long kTrapped[] = {SYS_rename,  SYS_renameat,  SYS_renameat2, SYS_link,     SYS_linkat,
                             SYS_unlink,  SYS_unlinkat,  SYS_mkdir,     SYS_mkdirat,  SYS_rmdir,
                             SYS_symlink, SYS_symlinkat, SYS_write,     SYS_pwrite64, SYS_writev,
                             SYS_pwritev, SYS_ftruncate, SYS_fallocate, SYS_fsync,    SYS_fdatasync,
                             SYS_sendfile};
// Where the flags say that something is made.
constexpr unsigned kMakes = O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);

bool is_on = false;

long call_recorded(long number, const greg_t* registers) {
  const auto text = [&](int i) { return reinterpret_cast<const char*>(registers[i]); };
  const auto fd = [&](int i) { return static_cast<int>(registers[i]); };
  const auto size = [&](int i) { return static_cast<std::size_t>(registers[i]); };
  constexpr int k1 = REG_RDI, k2 = REG_RSI, k3 = REG_RDX, k4 = REG_R10, k5 = REG_R8;
  switch (number) {
    case SYS_rename:
      return ::rename(text(k1), text(k2));
    case SYS_renameat:
      return ::renameat(fd(k1), text(k2), fd(k3), text(k4));
    case SYS_renameat2:
      return ::renameat2(fd(k1), text(k2), fd(k3), text(k4), static_cast<unsigned>(registers[k5]));
    case SYS_link:
      return ::link(text(k1), text(k2));
    case SYS_linkat:
      return ::linkat(fd(k1), text(k2), fd(k3), text(k4), fd(k5));
    case SYS_unlink:
      return ::unlink(text(k1));
    case SYS_unlinkat:
      return ::unlinkat(fd(k1), text(k2), fd(k3));
    case SYS_mkdir:
      return ::mkdir(text(k1), static_cast<mode_t>(registers[k2]));
    case SYS_mkdirat:
      return ::mkdirat(fd(k1), text(k2), static_cast<mode_t>(registers[k3]));
    case SYS_rmdir:
      return ::rmdir(text(k1));
    case SYS_symlink:
      return ::symlink(text(k1), text(k2));
    case SYS_symlinkat:
      return ::symlinkat(text(k1), fd(k2), text(k3));
    case SYS_write:
      return ::write(fd(k1), text(k2), size(k3));
    case SYS_pwrite64:
      return ::pwrite(fd(k1), text(k2), size(k3), registers[k4]);
    case SYS_writev:
      return ::writev(fd(k1), reinterpret_cast<const iovec*>(registers[k2]), fd(k3));
    case SYS_pwritev:
      return ::pwritev(fd(k1), reinterpret_cast<const iovec*>(registers[k2]), fd(k3),
                       registers[k4]);
    case SYS_ftruncate:
      return ::ftruncate(fd(k1), registers[k2]);
    case SYS_fallocate:
      return ::fallocate(fd(k1), fd(k2), registers[k3], registers[k4]);
    case SYS_fsync:
      return ::fsync(fd(k1));
    case SYS_fdatasync:
      return ::fdatasync(fd(k1));
    case SYS_open:
      return ::open(text(k1), fd(k2), static_cast<mode_t>(registers[k3]));
    case SYS_openat:
      return ::openat(fd(k1), text(k2), fd(k3), static_cast<mode_t>(registers[k4]));
    default: {
      const Turn turn;
      put_unknown("a system call that is trapped");
      errno = ENOSYS;
      return -1;
    }
  }
}

void on_trap(int, siginfo_t* info, void* context) {
  const int error = errno;
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const long result = call_recorded(info->si_syscall, registers);
  registers[REG_RAX] = result < 0 ? -errno : result;
  errno = error;
}

// For each call: is it this one, do its flags make something, and does it carry no mark?
std::vector<sock_filter> filter() {
  constexpr unsigned kLoad = BPF_LD | BPF_W | BPF_ABS;
  constexpr unsigned kEqual = BPF_JMP | BPF_JEQ | BPF_K;
  const auto argument = [](unsigned i) {
    return static_cast<unsigned>(offsetof(seccomp_data, args)) + 8 * i;
  };
  std::vector<sock_filter> lines;
  const auto load = [&](unsigned offset) { lines.push_back(BPF_STMT(kLoad, offset)); };
  const auto verdict = [&](unsigned what) { lines.push_back(BPF_STMT(BPF_RET | BPF_K, what)); };
  // Ours, by the lower half of the mark.
  load(argument(5));
  lines.push_back(BPF_JUMP(kEqual, static_cast<unsigned>(kUntrapped & 0xffffffff), 0, 1));
  verdict(SECCOMP_RET_ALLOW);
  load(offsetof(seccomp_data, nr));
  for (const long number : kTrapped) {
    lines.push_back(BPF_JUMP(kEqual, static_cast<unsigned>(number), 0, 1));
    verdict(SECCOMP_RET_TRAP);
  }
  for (const auto& [number, flags] : {std::pair{SYS_open, 1u}, std::pair{SYS_openat, 2u}}) {
    lines.push_back(BPF_JUMP(kEqual, static_cast<unsigned>(number), 0, 4));
    load(argument(flags));
    lines.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kMakes, 0, 1));
    verdict(SECCOMP_RET_TRAP);
    verdict(SECCOMP_RET_ALLOW);
  }
  verdict(SECCOMP_RET_ALLOW);
  return lines;
}

[[gnu::constructor]] void start() {
  if (std::getenv(kTrapVariable) == nullptr) return;
  struct sigaction action = {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigaction(SIGSYS, &action, nullptr);
  std::vector<sock_filter> lines = filter();
  sock_fprog program{static_cast<unsigned short>(lines.size()), lines.data()};
  is_on = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
          ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  if (!is_on) put_unknown("system calls without a filter");
}

}  // namespace

namespace thalia::crash {
bool traps() {
  return is_on;
}
}  // namespace thalia::crash

#else  // calls have other numbers, and arguments other registers

namespace thalia::crash {
bool traps() {
  return false;
}
}  // namespace thalia::crash

#endif
