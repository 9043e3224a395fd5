// Runs a test program with io_uring denied, as container runtimes (EPERM) and old kernels (ENOSYS)
// do:
//
//   without_io_uring EPERM|ENOSYS PROGRAM [ARGUMENT…]
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "support/fault.h"
#include "support/io_uring.h"

int main(int count, char** arguments) {
  constexpr int kSkipped = 77;
  const std::string_view denial = count > 2 ? arguments[1] : "";
  if (denial != "EPERM" && denial != "ENOSYS") {
    std::fprintf(stderr, "usage: without_io_uring EPERM|ENOSYS PROGRAM [ARGUMENT…]\n");
    return 2;
  }
  const int errno_value = denial == "EPERM" ? EPERM : ENOSYS;
  if (!thalia::test::install_faults({{SYS_io_uring_setup, errno_value},
                                     {SYS_io_uring_enter, errno_value},
                                     {SYS_io_uring_register, errno_value}})) {
    std::printf("SKIP: no seccomp filter: %s\n", std::strerror(errno));
    return kSkipped;
  }
  ::setenv(thalia::test::kIoUringDenied, arguments[1], 1);
  ::execv(arguments[2], arguments + 2);
  std::fprintf(stderr, "%s: %s\n", arguments[2], std::strerror(errno));
  return 2;
}
