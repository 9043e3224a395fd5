#include "support/io_uring.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>

namespace thalia::test {

IoUring io_uring_here() {
  // Without parameters the call itself fails with EFAULT or EINVAL, unless it is not let through.
  const bool failed = ::syscall(SYS_io_uring_setup, 1, nullptr) == -1;
  const bool usable = failed && (errno == EFAULT || errno == EINVAL);
  if (std::getenv(kIoUringDenied) == nullptr) return usable ? IoUring::usable : IoUring::missing;
  if (usable) throw std::runtime_error("io_uring was to be denied and is not");
  return IoUring::denied;
}

}  // namespace thalia::test
