// The calls that change bytes and sizes, and those that make changes last.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <vector>

#include "crash/recorder/recorder.h"

using namespace thalia::crash;

namespace {

// The first bytes of the pieces.
std::vector<iovec> first_bytes(const iovec* pieces, int count, std::size_t bytes) {
  std::vector<iovec> taken;
  for (int i = 0; i < count && bytes > 0; ++i) {
    taken.push_back({pieces[i].iov_base, std::min(pieces[i].iov_len, bytes)});
    bytes -= taken.back().iov_len;
  }
  return taken;
}

std::size_t bytes_in(const iovec* pieces, int count) {
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  return bytes;
}

// A write where the file's position is, or at an offset.
ssize_t write_file(int fd, const iovec* pieces, int count, bool at_position, off_t offset) {
  const auto call = [&](const iovec* some, int how_many) -> ssize_t {
    return at_position ? ask_kernel(SYS_writev, fd, some, how_many)
                       : ask_kernel(SYS_pwritev, fd, some, how_many, offset, 0L);
  };
  if (!is_watched(fd)) return call(pieces, count);
  const Turn turn;
  const Strike strike = next_strike(CallType::bytes, "write");
  if (strike.error != 0) {
    errno = strike.error;
    return -1;
  }
  const std::size_t all = bytes_in(pieces, count);
  const std::vector<iovec> wanted =
      first_bytes(pieces, count, strike.cut && all > 1 ? all / 2 : all);
  const ssize_t written = call(wanted.data(), static_cast<int>(wanted.size()));
  if (written <= 0) return written;
  if (at_position) offset = ask_kernel(SYS_lseek, fd, 0, SEEK_CUR) - written;
  put({.kind = Kind::write, .inode = inode_of(fd), .offset = static_cast<std::uint64_t>(offset)},
      {}, {},
      first_bytes(wanted.data(), static_cast<int>(wanted.size()),
                  static_cast<std::size_t>(written)));
  return written;
}

// What the kernel copied is read back.
void put_copied(int fd, off_t offset, std::size_t bytes) {
  std::vector<char> copy(bytes);
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const int reader = static_cast<int>(ask_kernel(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC));
  const long got = ask_kernel(SYS_pread64, reader, copy.data(), bytes, offset);
  ask_kernel(SYS_close, reader);
  if (got != static_cast<long>(bytes)) put_unknown("bytes that the kernel copied");
  const iovec piece{copy.data(), bytes};
  put({.kind = Kind::write, .inode = inode_of(fd), .offset = static_cast<std::uint64_t>(offset)},
      {}, {}, {&piece, 1});
}

template <typename Call>
int change_size(int fd, Kind kind, std::uint64_t length, const Call& call) {
  if (!is_watched(fd)) return call();
  const Turn turn;
  if (const Strike strike =
          next_strike(CallType::sync, kind == Kind::truncate ? "truncate" : "allocate");
      strike.error != 0) {
    errno = strike.error;
    return -1;
  }
  const int result = call();
  if (result == 0) put({.kind = kind, .inode = inode_of(fd), .length = length});
  return result;
}

int allocate(int fd, int mode, off_t offset, off_t bytes) {
  const auto call = [&] {
    return static_cast<int>(ask_kernel(SYS_fallocate, fd, mode, offset, bytes));
  };
  if ((mode & ~FALLOC_FL_KEEP_SIZE) != 0 && is_watched(fd)) put_unknown("a mode of fallocate");
  if ((mode & FALLOC_FL_KEEP_SIZE) != 0) return call();
  return change_size(fd, Kind::allocate, static_cast<std::uint64_t>(offset + bytes), call);
}

int sync_file(int fd, bool data_only) {
  const auto call = [&] {
    return static_cast<int>(ask_kernel(data_only ? SYS_fdatasync : SYS_fsync, fd));
  };
  if (!is_watched(fd)) return call();
  const Turn turn;
  if (const Strike strike =
          next_strike(CallType::sync, is_folder(fd) ? "sync of a folder" : "sync");
      strike.error != 0) {
    errno = strike.error;
    return -1;
  }
  const int result = call();
  if (result == 0)
    put({.kind = Kind::sync, .data_only = data_only ? 1u : 0u, .inode = inode_of(fd)});
  return result;
}

void* map_file(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (fd >= 0 && (flags & MAP_TYPE) != MAP_PRIVATE && (protection & PROT_WRITE) != 0 &&
      is_watched(fd)) {
    const Turn turn;
    put_unknown("writes through a shared mapping");
  }
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
ssize_t write(int fd, const void* data, std::size_t bytes) {
  // Most writes are to a terminal or a pipe.
  if (!is_watched(fd)) return ask_kernel(SYS_write, fd, data, bytes);
  const iovec piece{const_cast<void*>(data), bytes};
  return write_file(fd, &piece, 1, true, 0);
}
ssize_t writev(int fd, const iovec* pieces, int count) {
  return write_file(fd, pieces, count, true, 0);
}
ssize_t pwrite(int fd, const void* data, std::size_t bytes, off_t offset) {
  const iovec piece{const_cast<void*>(data), bytes};
  return write_file(fd, &piece, 1, false, offset);
}
ssize_t pwrite64(int fd, const void* data, std::size_t bytes, off_t offset) {
  return pwrite(fd, data, bytes, offset);
}
ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) {
  return write_file(fd, pieces, count, false, offset);
}
ssize_t pwritev64(int fd, const iovec* pieces, int count, off_t offset) {
  return write_file(fd, pieces, count, false, offset);
}
ssize_t pwritev2(int fd, const iovec* pieces, int count, off_t offset, int) {
  return write_file(fd, pieces, count, offset == -1, offset);
}
ssize_t pwritev64v2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  return pwritev2(fd, pieces, count, offset, flags);
}
ssize_t copy_file_range(int in, off_t* in_offset, int out, off_t* out_offset, std::size_t bytes,
                        unsigned flags) {
  const auto call = [&] {
    return ::syscall(SYS_copy_file_range, in, in_offset, out, out_offset, bytes, flags);
  };
  if (!is_watched(out)) return call();
  const Turn turn;
  if (const Strike strike = next_strike(CallType::bytes, "copy_file_range"); strike.error != 0) {
    errno = strike.error;
    return -1;
  }
  const long copied = call();
  if (copied > 0)
    put_copied(
        out,
        (out_offset != nullptr ? *out_offset : ask_kernel(SYS_lseek, out, 0, SEEK_CUR)) - copied,
        static_cast<std::size_t>(copied));
  return copied;
}
ssize_t sendfile(int out, int in, off_t* offset, std::size_t bytes) {
  const auto call = [&] { return ask_kernel(SYS_sendfile, out, in, offset, bytes); };
  if (!is_watched(out)) return call();
  const Turn turn;
  const long copied = call();
  if (copied > 0)
    put_copied(out, ask_kernel(SYS_lseek, out, 0, SEEK_CUR) - copied,
               static_cast<std::size_t>(copied));
  return copied;
}
ssize_t sendfile64(int out, int in, off_t* offset, std::size_t bytes) {
  return sendfile(out, in, offset, bytes);
}
int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const auto call = [&] { return static_cast<int>(ask_kernel(SYS_ioctl, fd, request, argument)); };
  if ((request != FICLONE && request != FICLONERANGE) || !is_watched(fd)) return call();
  const Turn turn;
  const int result = call();
  if (result == 0) put_unknown("a clone of a file");
  return result;
}

int ftruncate(int fd, off_t bytes) noexcept {
  return change_size(fd, Kind::truncate, static_cast<std::uint64_t>(bytes),
                     [&] { return static_cast<int>(ask_kernel(SYS_ftruncate, fd, bytes)); });
}
int ftruncate64(int fd, off_t bytes) noexcept {
  return ftruncate(fd, bytes);
}
int truncate(const char* path, off_t bytes) noexcept {
  const int fd = static_cast<int>(ask_kernel(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC));
  if (fd < 0) return -1;
  const int result = ftruncate(fd, bytes);
  ask_kernel(SYS_close, fd);
  return result;
}
int truncate64(const char* path, off_t bytes) noexcept {
  return truncate(path, bytes);
}
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  return allocate(fd, mode, offset, bytes);
}
int fallocate64(int fd, int mode, off_t offset, off_t bytes) {
  return allocate(fd, mode, offset, bytes);
}
int posix_fallocate(int fd, off_t offset, off_t bytes) {
  return allocate(fd, 0, offset, bytes) == 0 ? 0 : errno;
}
int posix_fallocate64(int fd, off_t offset, off_t bytes) {
  return posix_fallocate(fd, offset, bytes);
}

int fsync(int fd) {
  return sync_file(fd, false);
}
int fdatasync(int fd) {
  return sync_file(fd, true);
}
int syncfs(int fd) noexcept {
  const Turn turn;
  const int result = static_cast<int>(ask_kernel(SYS_syncfs, fd));
  if (result == 0 && is_watched(fd)) put({.kind = Kind::sync_all});
  return result;
}
void sync() noexcept {
  const Turn turn;
  ask_kernel(SYS_sync);
  put({.kind = Kind::sync_all});
}
void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd,
           off_t offset) noexcept {
  return map_file(address, bytes, protection, flags, fd, offset);
}
void* mmap64(void* address, std::size_t bytes, int protection, int flags, int fd,
             off_t offset) noexcept {
  return map_file(address, bytes, protection, flags, fd, offset);
}
}
#pragma GCC visibility pop
