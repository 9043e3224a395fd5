#include "io/folder/clone_file.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

#include "io/system/posix_error.h"

namespace thalia::io {

bool clone_file(int from, int to) noexcept {
  return retry_interrupted([&] { return ::ioctl(to, FICLONE, from); }) == 0;
}

}  // namespace thalia::io
