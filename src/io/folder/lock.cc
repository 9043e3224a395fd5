// An flock(2) belongs to the open file. A process that is forked has the same one, and would hold
// the lock for as long as it lives, also where the process that took it was killed: so a forked
// process gives up its copy. The file is never removed, so everybody who locks it locks the same
// one.
#include "io/folder/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "io/file/posix_file.h"
#include "io/system/posix_error.h"
#include "io/system/process.h"
#include "thalia/error.h"
#include "thalia/text.h"

namespace thalia::io {
namespace {

constexpr const char* kName = ".lock";
constexpr std::chrono::milliseconds kLockPause{10};
constexpr std::size_t kLongestNote = 512;
constexpr int kMostTries = 100;  // of a folder that is gone each time it was made

std::string read_note(int fd) {
  std::array<char, kLongestNote> text;
  const ssize_t length = ::pread(fd, text.data(), text.size(), 0);
  if (length <= 0) return {};
  const std::string_view whole(text.data(), static_cast<std::size_t>(length));
  return printable(whole.substr(0, whole.find('\n')));
}

std::string program_name() {
  std::array<char, 64> name;
  const UniqueFd fd(::open("/proc/self/comm", O_RDONLY | O_CLOEXEC));
  const ssize_t length = fd ? ::read(fd.get(), name.data(), name.size()) : 0;
  const std::string_view whole(name.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return printable(whole.substr(0, whole.find('\n')));
}

std::string own_note() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return fmt::format("process {} ({}) on {}, since {}", process_id(), program_name(), host_name(),
                     time.data());
}

// The descriptors of locks of this process. In a forked one they lead to /dev/null afterwards, so
// that anybody who owns them can close them as ever.
struct OwnLocks {
  std::mutex mutex;
  std::vector<int> fds;
};

// Never destroyed: a thread may fork while statics are.
OwnLocks& own_locks() {
  static OwnLocks* const instance = [] {
    auto made = std::make_unique<OwnLocks>();
    hold_over_forks(made->mutex);
    const int error = ::pthread_atfork(nullptr, nullptr, [] {
      OwnLocks& locks = own_locks();
      const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      for (const int fd : locks.fds)
        if (null >= 0) ::dup3(null, fd, O_CLOEXEC);
      if (null >= 0) ::close(null);
      locks.fds.clear();
    });
    if (error != 0) throw IoError("pthread_atfork", error);
    return made.release();
  }();
  return *instance;
}

// What says that the file system has no locks, and not that somebody has this one.
bool is_unsupported(int errno_value) {
  return errno_value == ENOLCK || errno_value == EOPNOTSUPP || errno_value == ENOSYS ||
         errno_value == EINVAL || errno_value == EBADF;  // the last is NFS's answer for folders
}

// False if somebody else has it.
bool try_lock(int fd, const std::filesystem::path& path, std::optional<std::string>& missing) {
  if (retry_interrupted([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  if (!is_unsupported(errno)) throw_errno("flock", path);
  missing =
      fmt::format("the file system has no locks ({})", std::generic_category().message(errno));
  return true;
}

// A link is nobody's lock.
UniqueFd open_to_look(const std::filesystem::path& folder) {
  return UniqueFd(::open((folder / kName).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

[[noreturn]] void fail_held(const std::filesystem::path& path, const std::string& note) {
  throw_errno(
      fmt::format("taking the lock, which {} holds,", note.empty() ? "another process" : note),
      path, {}, EWOULDBLOCK);
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, bool wait,
                       const std::stop_token& cancel) {
  const std::filesystem::path path = folder / kName;
  OwnLocks& locks = own_locks();
  {
    // No process is forked between.
    const std::lock_guard guard(locks.mutex);
    locks.fds.reserve(locks.fds.size() + 1);
    fd_.reset(retry_interrupted([&] {
      return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    }));
    if (!fd_) throw_errno("open", path);
    locks.fds.push_back(fd_.get());
  }
  try {
    take(path, wait, cancel);
  } catch (...) {
    give_up();
    throw;
  }
}

FolderLock::~FolderLock() {
  give_up();
}

void FolderLock::give_up() noexcept {
  OwnLocks& locks = own_locks();
  const std::lock_guard guard(locks.mutex);
  std::erase(locks.fds, fd_.get());
  fd_.reset();
}

void FolderLock::take(const std::filesystem::path& path, bool wait, const std::stop_token& cancel) {
  while (!try_lock(fd_.get(), path, missing_)) {
    if (!wait) fail_held(path, read_note(fd_.get()));
    stop_if_cancelled(cancel);
    std::this_thread::sleep_for(kLockPause);
  }
  if (missing_) return;
  // For people alone: who cannot write it is not refused.
  std::string note = own_note() + "\n";
  if (::ftruncate(fd_.get(), 0) == 0) [[maybe_unused]]
    const ssize_t written = ::pwrite(fd_.get(), note.data(), note.size(), 0);
}

// Who held it before may have made the folder, and removed it when it failed: then all begins anew.
HeldFolder::HeldFolder(const std::filesystem::path& path, Durability durability,
                       const std::stop_token& cancel) {
  for (int tries = 1; !folder_ || !is_at_path(folder_->fd(), path); ++tries) {
    made_.emplace(path, durability);
    folder_ = Folder::find(path);
    if (!folder_) {
      if (tries == kMostTries) folder_.emplace(path);  // which throws
      continue;
    }
    std::optional<std::string> missing;
    while (!try_lock(folder_->fd(), path, missing)) {
      stop_if_cancelled(cancel);
      std::this_thread::sleep_for(kLockPause);
    }
  }
}

// A process that was forked meanwhile has the same lock, so closing would not let go of it. What
// was made goes first: who waits must not be given a folder that is about to be removed.
HeldFolder::~HeldFolder() {
  made_.reset();
  ::flock(folder_->fd(), LOCK_UN);
}

std::string lock_holder(const std::filesystem::path& folder) {
  const UniqueFd fd = open_to_look(folder);
  return fd ? read_note(fd.get()) : std::string();
}

bool is_locked(const std::filesystem::path& folder) noexcept {
  try {
    const UniqueFd fd = open_to_look(folder);
    return fd && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace thalia::io
