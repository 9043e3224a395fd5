// For LD_PRELOAD: something happens to the program at a system call that the environment names, and
// it goes on only when it has noticed. So a test of what it leaves behind depends on no clock.
//
//   THALIA_TEST_SIGNAL, THALIA_TEST_STEP   this signal comes as it is about to change files for the
//                                          STEPth time, from 1 on
//   THALIA_TEST_SHORTEN, THALIA_TEST_STEP  this file loses all its bytes once it has been mapped,
//   or
//                                          as it is about to be read with pread for the STEPth time
//                                          with the step "flock", as it tries to take a lock
//   THALIA_TEST_UNSYNCED                   a sync of a "file", or of a "folder", fails
//
// Unnamed files are denied, as some file systems do: what is left behind has a name then.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<int> g_steps = 0;
std::atomic<int> g_reads = 0;
std::atomic<int> g_locks = 0;
std::atomic<int> g_waits = 0;  // for a signal, of the thread that waits for one

int number_of(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

template <typename Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
#define REAL(name) (*real(&::name, #name))

// Anybody who waits for signals has been woken when it waits for the next one.
void raise_and_wait(int number) {
  ::kill(::getpid(), number);
  for (int tries = 0; g_waits < 2; ++tries) {
    if (tries == 20'000) {
      std::fputs("interruption: nobody noticed the signal\n", stderr);
      std::abort();
    }
    ::usleep(1000);
  }
}

void step() {
  const int number = number_of("THALIA_TEST_SIGNAL");
  if (number != 0 && ++g_steps == number_of("THALIA_TEST_STEP")) raise_and_wait(number);
}

void step_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) step();
}

bool is_shortened(int fd) {
  const char* const path = std::getenv("THALIA_TEST_SHORTEN");
  struct stat named {
  }, open{};
  return path != nullptr && fd >= 0 && ::stat(path, &named) == 0 && ::fstat(fd, &open) == 0 &&
         named.st_ino == open.st_ino && named.st_dev == open.st_dev;
}

void shorten() {
  [[maybe_unused]] const int done = ::truncate(std::getenv("THALIA_TEST_SHORTEN"), 0);
}

void before_reading(int fd) {
  if (is_shortened(fd) && ++g_reads == number_of("THALIA_TEST_STEP")) shorten();
}

bool sync_fails(int fd) {
  const char* const kind = std::getenv("THALIA_TEST_UNSYNCED");
  struct stat status {};
  if (kind == nullptr || ::fstat(fd, &status) != 0) return false;
  if (!(std::strcmp(kind, "file") == 0 ? S_ISREG(status.st_mode) : S_ISDIR(status.st_mode)))
    return false;
  errno = EIO;
  return true;
}

bool is_unnamed(int flags) {
  return (flags & O_TMPFILE) == O_TMPFILE;
}

int denied() {
  errno = EOPNOTSUPP;
  return -1;
}

}  // namespace

extern "C" {

#define MODE_OF(flags)                               \
  mode_t mode = 0;                                   \
  if ((flags & O_CREAT) != 0 || is_unnamed(flags)) { \
    va_list arguments;                               \
    va_start(arguments, flags);                      \
    mode = va_arg(arguments, mode_t);                \
    va_end(arguments);                               \
  }                                                  \
  if (is_unnamed(flags)) return denied()

int open(const char* path, int flags, ...) {
  MODE_OF(flags);
  return real(static_cast<int (*)(const char*, int, ...)>(nullptr), "open")(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE_OF(flags);
  return real(static_cast<int (*)(const char*, int, ...)>(nullptr), "open64")(path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  MODE_OF(flags);
  return real(static_cast<int (*)(int, const char*, int, ...)>(nullptr), "openat")(folder, path,
                                                                                   flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  MODE_OF(flags);
  return real(static_cast<int (*)(int, const char*, int, ...)>(nullptr), "openat64")(folder, path,
                                                                                     flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t length) {
  step_of(fd);
  return REAL(write)(fd, bytes, length);
}
ssize_t pwrite(int fd, const void* bytes, size_t length, off_t offset) {
  step_of(fd);
  return REAL(pwrite)(fd, bytes, length, offset);
}
ssize_t pwrite64(int fd, const void* bytes, size_t length, off64_t offset) {
  step_of(fd);
  return REAL(pwrite64)(fd, bytes, length, offset);
}
ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) {
  step_of(fd);
  return REAL(pwritev)(fd, pieces, count, offset);
}
ssize_t pwritev64(int fd, const iovec* pieces, int count, off64_t offset) {
  step_of(fd);
  return REAL(pwritev64)(fd, pieces, count, offset);
}
int fsync(int fd) {
  step_of(fd);
  return sync_fails(fd) ? -1 : REAL(fsync)(fd);
}
int fdatasync(int fd) {
  step_of(fd);
  return sync_fails(fd) ? -1 : REAL(fdatasync)(fd);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  step();
  return REAL(renameat)(from_folder, from, to_folder, to);
}
int rename(const char* from, const char* to) noexcept {
  step();
  return REAL(rename)(from, to);
}

int flock(int fd, int operation) noexcept {
  const char* const when = std::getenv("THALIA_TEST_STEP");
  if (when != nullptr && std::strcmp(when, "flock") == 0 && ++g_locks == 1)
    raise_and_wait(number_of("THALIA_TEST_SIGNAL"));
  return REAL(flock)(fd, operation);
}

int sigwait(const sigset_t* signals, int* number) {
  ++g_waits;
  return REAL(sigwait)(signals, number);
}

ssize_t pread(int fd, void* bytes, size_t length, off_t offset) {
  before_reading(fd);
  return REAL(pread)(fd, bytes, length, offset);
}
ssize_t pread64(int fd, void* bytes, size_t length, off64_t offset) {
  before_reading(fd);
  return REAL(pread64)(fd, bytes, length, offset);
}
void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  void* const mapped = REAL(mmap)(address, length, protection, flags, fd, offset);
  if (is_shortened(fd)) shorten();
  return mapped;
}
void* mmap64(void* address, size_t length, int protection, int flags, int fd,
             off64_t offset) noexcept {
  void* const mapped = REAL(mmap64)(address, length, protection, flags, fd, offset);
  if (is_shortened(fd)) shorten();
  return mapped;
}
}
