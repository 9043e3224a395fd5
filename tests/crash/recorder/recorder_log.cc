// Everything here asks the kernel directly: the C library's functions are the recorder's own.
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "crash/recorder/recorder.h"

namespace thalia::crash {
namespace {

struct State {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  bool ready = false;
  int log = -1;
  char folder[4096] = {};
  std::size_t folder_bytes = 0;
  long strike_at = 0;
  bool strike_on = false;
  Strike strike;
  long calls = 0;
};

State& state() {
  static State all;
  return all;
}

// At the first call, which may come before any constructor has run.
const State& opened() {
  State& all = state();
  if (all.ready) return all;
  all.ready = true;
  const char* const folder = std::getenv(kFolderVariable);
  const char* const log = std::getenv(kLogVariable);
  if (folder == nullptr || log == nullptr) return all;
  std::snprintf(all.folder, sizeof all.folder, "%s", folder);
  all.folder_bytes = std::strlen(all.folder);
  all.log = static_cast<int>(
      ask_kernel(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (const char* fault = std::getenv(kFaultVariable); fault != nullptr) {
    char* rest = nullptr;
    all.strike_at = std::strtol(fault, &rest, 10);
    all.strike_on = *rest == '+';
    if (all.strike_on) ++rest;
    if (std::strcmp(rest, ":short") == 0) {
      all.strike.cut = true;
    } else {
      all.strike.error = std::atoi(rest + 1);
    }
  }
  return all;
}

// The kernel's name of an open file, or nothing.
std::string_view path_of(int fd, std::span<char> room) {
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long bytes = ask_kernel(SYS_readlinkat, AT_FDCWD, link, room.data(), room.size());
  return {room.data(), static_cast<std::size_t>(bytes < 0 ? 0 : bytes)};
}

bool is_below(std::string_view path) {
  const State& all = opened();
  if (all.log < 0 || all.folder_bytes == 0) return false;
  const std::string_view folder(all.folder, all.folder_bytes);
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

struct stat status_of(int fd) {
  struct stat status = {};
  ask_kernel(SYS_fstat, fd, &status);
  return status;
}

}  // namespace

Turn::Turn() {
  pthread_mutex_lock(&state().mutex);
}
Turn::~Turn() {
  pthread_mutex_unlock(&state().mutex);
}

bool is_watched(int fd) {
  const int error = errno;
  char room[4096];
  const bool watched = is_below(path_of(fd, room));
  const mode_t mode = watched ? status_of(fd).st_mode : 0;
  errno = error;
  return S_ISREG(mode) || S_ISDIR(mode);
}

bool is_folder(int fd) {
  return S_ISDIR(status_of(fd).st_mode);
}

std::uint64_t inode_of(int fd) {
  return status_of(fd).st_ino;
}

std::uint64_t inode_at(int folder_fd, const char* path) {
  const int error = errno;
  struct stat status = {};
  const long failed = ask_kernel(SYS_newfstatat, folder_fd, path, &status, AT_SYMLINK_NOFOLLOW);
  errno = error;
  return failed != 0 ? 0 : status.st_ino;
}

Place place_of(int folder_fd, const char* path) {
  const int error = errno;
  Place place;
  std::string_view text(path);
  while (text.size() > 1 && text.ends_with('/')) text.remove_suffix(1);
  const std::size_t slash = text.rfind('/');
  const std::string_view name = slash == text.npos ? text : text.substr(slash + 1);
  char folder[4096] = ".";
  if (slash != text.npos)
    std::snprintf(folder, sizeof folder, "%.*s", static_cast<int>(slash == 0 ? 1 : slash), path);
  const int fd =
      static_cast<int>(ask_kernel(SYS_openat, folder_fd, folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (fd >= 0) {
    char room[4096];
    place.watched = is_below(path_of(fd, room));
    place.folder = inode_of(fd);
    std::snprintf(place.name, sizeof place.name, "%.*s", static_cast<int>(name.size()),
                  name.data());
    ask_kernel(SYS_close, fd);
  }
  errno = error;
  return place;
}

Place place_of(int fd) {
  char room[4096];
  const std::string_view path = path_of(fd, std::span(room).first(sizeof room - 1));
  room[path.size()] = '\0';
  return place_of(AT_FDCWD, room);
}

void put(Record record, std::string_view name, std::string_view other_name,
         std::span<const iovec> bytes) {
  const State& all = opened();
  if (all.log < 0) return;
  const int error = errno;
  record.name_bytes = static_cast<std::uint32_t>(name.size());
  record.other_name_bytes = static_cast<std::uint32_t>(other_name.size());
  for (const iovec& piece : bytes) record.bytes += piece.iov_len;
  const auto write_all = [&](const void* data, std::size_t left) {
    auto* at = static_cast<const char*>(data);
    while (left > 0) {
      const long written = ask_kernel(SYS_write, all.log, at, left);
      if (written <= 0) std::abort();
      at += written;
      left -= static_cast<std::size_t>(written);
    }
  };
  write_all(&record, sizeof record);
  write_all(name.data(), name.size());
  write_all(other_name.data(), other_name.size());
  for (const iovec& piece : bytes) write_all(piece.iov_base, piece.iov_len);
  errno = error;
}

void put_unknown(std::string_view what) {
  std::fprintf(stderr, "recorder: cannot follow %.*s\n", static_cast<int>(what.size()),
               what.data());
  put({.kind = Kind::unknown}, what);
}

Strike next_strike(CallType type, std::string_view name) {
  opened();
  State& all = state();
  if (all.strike_at == 0) return {};
  if (all.strike.error == EINTR && type == CallType::name) return {};
  if (all.strike.error == ECANCELED && type != CallType::ring && type != CallType::ring_sync)
    return {};
  if (all.strike.cut && type != CallType::bytes && type != CallType::ring) return {};
  ++all.calls;
  if (all.calls != all.strike_at && !(all.strike_on && all.calls > all.strike_at)) return {};
  put({.kind = Kind::struck}, name);
  return all.strike;
}

}  // namespace thalia::crash

// For programs to tell what they attempt and promise: found by name (dlsym), so that they run
// without the recorder too.
extern "C" {
[[gnu::visibility("default")]] void thalia_crash_attempt(const char* what) {
  const thalia::crash::Turn turn;
  thalia::crash::put({.kind = thalia::crash::Kind::attempt}, what);
}
[[gnu::visibility("default")]] void thalia_crash_promise(const char* what) {
  const thalia::crash::Turn turn;
  thalia::crash::put({.kind = thalia::crash::Kind::promise}, what);
}
}
