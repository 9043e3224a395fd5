#include "io/locked_file.h"

#include <sys/file.h>
#include <sys/stat.h>

#include "io/posix_error.h"
#include "io/posix_file.h"

namespace thalia::io {
namespace {

void lock(int fd, bool wait, const std::filesystem::path& path) {
  if (retry_interrupted([&] { return ::flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB); }) == 0)
    return;
  throw_errno(errno == EWOULDBLOCK
                  ? "taking the lock, which another append, compact or recover holds,"
                  : "flock",
              path);
}

}  // namespace

LockedFile::LockedFile(const std::filesystem::path& path, Access access, bool wait) : path_(path) {
  do {
    fd_ = access == Access::read ? open_for_reading(path) : open_for_update(path);
    lock(fd_.get(), wait, path);
  } while (!is_at_path());
}

bool LockedFile::is_at_path() const {
  struct stat own;
  struct stat there;
  if (::fstat(fd_.get(), &own) != 0) throw_errno("fstat", path_);
  if (::stat(path_.c_str(), &there) != 0) {
    if (errno == ENOENT) return false;
    throw_errno("stat", path_);
  }
  return own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

}  // namespace thalia::io
