#include "io/locked_file.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/fail.h"
#include "io/posix_error.h"
#include "io/posix_file.h"

namespace thalia::io {
namespace {

// Between two looks at a lock that another holds: flock() itself would not hear of a stop.
constexpr std::chrono::milliseconds kPause{10};

void lock(int fd, bool wait, const std::filesystem::path& path, const std::stop_token& cancel) {
  while (retry_interrupted([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) != 0) {
    const bool held = errno == EWOULDBLOCK;
    if (!held || !wait) {
      throw_errno(
          held ? "taking the lock, which another append, compact or recover holds," : "flock",
          path);
    }
    stop_if_cancelled(cancel);
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

LockedFile::LockedFile(const std::filesystem::path& path, Access access, bool wait,
                       const std::stop_token& cancel)
    : path_(path) {
  do {
    fd_ = access == Access::read ? open_for_reading(path) : open_for_update(path);
    lock(fd_.get(), wait, path, cancel);
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
