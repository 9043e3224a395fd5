// Both descriptors of a file are opened on the same inode: the direct one through /proc/self/fd, so
// it also works for a file without a name, and for one whose name means another file by now.
// Whatever is not to be had here is no error: callers go on through the page cache.
#include "io/direct/direct_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <string>

#include "io/memory/aligned_buffer.h"
#include "io/system/posix_error.h"

namespace thalia::io {

UniqueFd open_direct(int fd, DirectAccess access) {
  const int flags = access == DirectAccess::read ? O_RDONLY : O_WRONLY;
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  return UniqueFd(
      retry_interrupted([&] { return ::open(path.c_str(), flags | O_DIRECT | O_CLOEXEC); }));
}

std::size_t direct_memory_alignment(int direct_fd) noexcept {
#ifdef STATX_DIOALIGN
  struct statx status;
  if (::statx(direct_fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0 && status.stx_dio_mem_align != 0) {
    return status.stx_dio_mem_align;
  }
#else
  static_cast<void>(direct_fd);
#endif
  return kDirectAlignment;
}

bool is_in_memory(int fd) noexcept {
  struct statfs status;
  if (::fstatfs(fd, &status) != 0) return false;
  return status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC;
}

}  // namespace thalia::io
