// An flock(2) belongs to the open file, not to its name. A compact replaces the file by a rename,
// so a lock that we waited for may be one on a file that nobody can reach any more. That is why the
// name is looked at again once the lock is held, and why this begins anew until both agree. The
// kernel lets go of the lock with the descriptor, also when the process is killed.
#include "io/file/locked_file.h"

#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/fail.h"
#include "io/file/posix_file.h"
#include "io/system/posix_error.h"

namespace thalia::io {
namespace {

// Pause between two attempts. A blocking flock() would not notice a request to stop.
constexpr std::chrono::milliseconds kPause{10};

void lock(int fd, bool wait, const std::filesystem::path& path, const std::stop_token& cancel) {
  while (retry_interrupted([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) != 0) {
    // Other errors, such as ENOLCK, do not go away by waiting.
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
  return io::is_at_path(fd_.get(), path_);
}

}  // namespace thalia::io
