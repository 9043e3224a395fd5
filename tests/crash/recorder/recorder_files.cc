// The calls that change names: files and folders made, linked, renamed and removed.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "crash/recorder/recorder.h"

using namespace thalia::crash;

namespace {

constexpr unsigned kMakesUnnamed = O_TMPFILE & ~O_DIRECTORY;

int fail(int error) {
  errno = error;
  return -1;
}

// Opens by `call`, which returns a descriptor, and records what it made.
template <typename Call>
int open_by(int folder_fd, const char* path, int flags, const Call& call) {
  const bool unnamed = (static_cast<unsigned>(flags) & kMakesUnnamed) != 0;
  const bool makes = (flags & O_CREAT) != 0 || unnamed;
  if (!makes && (flags & O_TRUNC) == 0) return call();
  const Turn turn;
  const Place named = place_of(folder_fd, path);
  if (named.watched)
    if (const Strike strike = next_strike(CallType::name, "open"); strike.error != 0)
      return fail(strike.error);
  // A link is followed here, as by the call.
  const bool existed = ask_kernel(SYS_faccessat, folder_fd, path, F_OK) == 0;
  const int fd = call();
  if (fd < 0 || !is_watched(fd)) return fd;
  const std::uint64_t inode = inode_of(fd);
  if (unnamed) {
    put({.kind = Kind::make_file, .inode = inode});
  } else if (!existed) {
    const Place place = place_of(fd);
    put({.kind = Kind::make_file, .inode = inode, .folder = place.folder}, place.name);
  } else if ((flags & O_TRUNC) != 0) {
    put({.kind = Kind::truncate, .inode = inode});
  }
  return fd;
}

int open_file(int folder_fd, const char* path, int flags, mode_t mode) {
  return open_by(folder_fd, path, flags, [&] {
    return static_cast<int>(ask_kernel(SYS_openat, folder_fd, path, flags, mode));
  });
}

// stdio and iostreams open their files inside the C library. What stdio writes is not seen, what
// iostreams write is.
FILE* open_stream(const char* path, const char* mode, const char* function) {
  const auto real =
      reinterpret_cast<FILE* (*)(const char*, const char*)>(::dlsym(RTLD_NEXT, function));
  if (traps()) return real(path, mode);
  const int flags = mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT : 0;
  FILE* file = nullptr;
  open_by(AT_FDCWD, path, flags, [&] {
    file = real(path, mode);
    return file == nullptr ? -1 : ::fileno(file);
  });
  return file;
}

int link_file(int from_fd, const char* from, int to_fd, const char* to, int flags) {
  const Turn turn;
  const Place place = place_of(to_fd, to);
  if (place.watched)
    if (const Strike strike = next_strike(CallType::name, "link"); strike.error != 0)
      return fail(strike.error);
  const int result = static_cast<int>(ask_kernel(SYS_linkat, from_fd, from, to_fd, to, flags));
  if (result == 0 && place.watched)
    put({.kind = Kind::link, .inode = inode_at(to_fd, to), .folder = place.folder}, place.name);
  return result;
}

int rename_file(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) {
  const Turn turn;
  const Place source = place_of(from_fd, from);
  const Place target = place_of(to_fd, to);
  if (target.watched)
    if (const Strike strike = next_strike(CallType::name, "rename"); strike.error != 0)
      return fail(strike.error);
  const std::uint64_t inode = inode_at(from_fd, from);
  const bool same = inode_at(to_fd, to) == inode;  // of two names of one file both stay
  const int result = static_cast<int>(ask_kernel(SYS_renameat2, from_fd, from, to_fd, to, flags));
  if (result != 0 || same || (!source.watched && !target.watched)) return result;
  if (source.watched != target.watched || (flags & RENAME_EXCHANGE) != 0)
    put_unknown("a rename into or out of the folder, or an exchange");
  put({.kind = Kind::rename,
       .inode = inode,
       .folder = source.folder,
       .other_folder = target.folder},
      source.name, target.name);
  return result;
}

int unlink_file(int folder_fd, const char* path, int flags) {
  const Turn turn;
  const Place place = place_of(folder_fd, path);
  if (place.watched)
    if (const Strike strike = next_strike(CallType::name, "unlink"); strike.error != 0)
      return fail(strike.error);
  const int result = static_cast<int>(ask_kernel(SYS_unlinkat, folder_fd, path, flags));
  if (result == 0 && place.watched) put({.kind = Kind::unlink, .folder = place.folder}, place.name);
  return result;
}

int make_folder(int folder_fd, const char* path, mode_t mode) {
  const Turn turn;
  const Place place = place_of(folder_fd, path);
  if (place.watched)
    if (const Strike strike = next_strike(CallType::name, "mkdir"); strike.error != 0)
      return fail(strike.error);
  const int result = static_cast<int>(ask_kernel(SYS_mkdirat, folder_fd, path, mode));
  if (result == 0 && place.watched)
    put({.kind = Kind::make_folder, .inode = inode_at(folder_fd, path), .folder = place.folder},
        place.name);
  return result;
}

int make_symlink(const char* target, int folder_fd, const char* path) {
  const Turn turn;
  const Place place = place_of(folder_fd, path);
  if (place.watched)
    if (const Strike strike = next_strike(CallType::name, "symlink"); strike.error != 0)
      return fail(strike.error);
  const int result = static_cast<int>(ask_kernel(SYS_symlinkat, target, folder_fd, path));
  if (result == 0 && place.watched) {
    const std::string_view text(target);
    const iovec bytes{const_cast<char*>(text.data()), text.size()};
    put({.kind = Kind::make_symlink, .inode = inode_at(folder_fd, path), .folder = place.folder},
        place.name, {}, {&bytes, 1});
  }
  return result;
}

mode_t mode_of(int flags, va_list arguments) {
  const bool takes = (flags & O_CREAT) != 0 || (static_cast<unsigned>(flags) & kMakesUnnamed) != 0;
  return takes ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
#define OPEN(name)                                 \
  int name(const char* path, int flags, ...) {     \
    va_list arguments;                             \
    va_start(arguments, flags);                    \
    const mode_t mode = mode_of(flags, arguments); \
    va_end(arguments);                             \
    return open_file(AT_FDCWD, path, flags, mode); \
  }
#define OPENAT(name)                                          \
  int name(int folder_fd, const char* path, int flags, ...) { \
    va_list arguments;                                        \
    va_start(arguments, flags);                               \
    const mode_t mode = mode_of(flags, arguments);            \
    va_end(arguments);                                        \
    return open_file(folder_fd, path, flags, mode);           \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
#undef OPEN
#undef OPENAT
// What calls with a flag set that is known become with _FORTIFY_SOURCE.
int __open_2(const char* path, int flags) {
  return open_file(AT_FDCWD, path, flags, 0);
}
int __open64_2(const char* path, int flags) {
  return open_file(AT_FDCWD, path, flags, 0);
}
int __openat_2(int folder_fd, const char* path, int flags) {
  return open_file(folder_fd, path, flags, 0);
}
int __openat64_2(int folder_fd, const char* path, int flags) {
  return open_file(folder_fd, path, flags, 0);
}
int creat(const char* path, mode_t mode) {
  return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
FILE* fopen(const char* path, const char* mode) {
  return open_stream(path, mode, "fopen");
}
FILE* fopen64(const char* path, const char* mode) {
  return open_stream(path, mode, "fopen64");
}
int creat64(const char* path, mode_t mode) {
  return creat(path, mode);
}

int link(const char* from, const char* to) noexcept {
  return link_file(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) noexcept {
  return link_file(from_fd, from, to_fd, to, flags);
}
int rename(const char* from, const char* to) noexcept {
  return rename_file(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int from_fd, const char* from, int to_fd, const char* to) noexcept {
  return rename_file(from_fd, from, to_fd, to, 0);
}
int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) noexcept {
  return rename_file(from_fd, from, to_fd, to, flags);
}
int unlink(const char* path) noexcept {
  return unlink_file(AT_FDCWD, path, 0);
}
int unlinkat(int folder_fd, const char* path, int flags) noexcept {
  return unlink_file(folder_fd, path, flags);
}
int rmdir(const char* path) noexcept {
  return unlink_file(AT_FDCWD, path, AT_REMOVEDIR);
}
// The C library's own calls the two above past us.
int remove(const char* path) noexcept {
  const int result = unlink_file(AT_FDCWD, path, 0);
  if (result == 0 || (errno != EISDIR && errno != EPERM)) return result;
  return unlink_file(AT_FDCWD, path, AT_REMOVEDIR);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return make_folder(AT_FDCWD, path, mode);
}
int mkdirat(int folder_fd, const char* path, mode_t mode) noexcept {
  return make_folder(folder_fd, path, mode);
}
int symlink(const char* target, const char* path) noexcept {
  return make_symlink(target, AT_FDCWD, path);
}
int symlinkat(const char* target, int folder_fd, const char* path) noexcept {
  return make_symlink(target, folder_fd, path);
}
}
#pragma GCC visibility pop
