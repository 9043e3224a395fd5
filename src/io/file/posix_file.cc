// Each loop here keeps offset and the rest of the bytes in step, so an error carries the offset
// that was reached. A transfer of 0 bytes ends every loop: at the end of the file a read says so,
// and a write fails, because a regular file that takes nothing would be tried for ever.
#include "io/file/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <climits>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "io/system/posix_error.h"
#include "thalia/error.h"

namespace thalia::io {
namespace {

// See reserve_space(): enough for stray signals, few enough to end under a fast timer.
constexpr int kReserveTries = 10;

struct stat stat_of(int fd, const std::filesystem::path& path) {
  struct stat status;
  if (::fstat(fd, &status) != 0) throw_errno("fstat", path);
  return status;
}

UniqueFd open_regular(const std::filesystem::path& path, int access) {
  // Without O_NONBLOCK, opening a FIFO would wait for its writer before we can say no.
  UniqueFd fd(retry_interrupted(
      [&] { return ::open(path.c_str(), access | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  if (!fd) throw_errno("open", path);
  const mode_t mode = stat_of(fd.get(), path).st_mode;
  if (!S_ISREG(mode))
    throw UsageError(ErrorCode::bad_argument, not_a_file(mode), {.path = path.string()});
  return fd;
}

// Drops the first `count` bytes of the pieces that start at `first`; returns the first piece that
// has bytes left.
std::size_t skip_bytes(std::vector<iovec>& pieces, std::size_t first, std::size_t count) {
  while (first < pieces.size() && count >= pieces[first].iov_len) count -= pieces[first++].iov_len;
  if (count > 0) {
    pieces[first].iov_base = static_cast<std::byte*>(pieces[first].iov_base) + count;
    pieces[first].iov_len -= count;
  }
  return first;
}

// A regular file that takes no byte and names no reason would be tried for ever.
std::size_t checked_progress(ssize_t written, const char* operation, std::uint64_t offset,
                             const std::filesystem::path& path) {
  if (written < 0) throw_errno(operation, path, offset);
  if (written == 0) throw_errno(operation, path, offset, EIO);
  return static_cast<std::size_t>(written);
}

}  // namespace

const char* not_a_file(unsigned mode) noexcept {
  if (S_ISDIR(mode)) return "a folder, where a file is expected; name the checkpoint in it";
  return S_ISLNK(mode) ? "a symbolic link, which is not followed" : "not a regular file";
}

UniqueFd open_for_reading(const std::filesystem::path& path) {
  return open_regular(path, O_RDONLY);
}

UniqueFd open_for_update(const std::filesystem::path& path) {
  return open_regular(path, O_RDWR);
}

UniqueFd duplicate(int fd, const std::filesystem::path& path) {
  UniqueFd again(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!again) throw_errno("fcntl", path);
  return again;
}

bool is_at_path(int fd, const std::filesystem::path& path) {
  struct stat own;
  struct stat there;
  if (::fstat(fd, &own) != 0) throw_errno("fstat", path);
  if (::stat(path.c_str(), &there) != 0) {
    if (errno == ENOENT) return false;
    throw_errno("stat", path);
  }
  return own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

std::uint64_t file_size(int fd, const std::filesystem::path& path) {
  return static_cast<std::uint64_t>(stat_of(fd, path).st_size);
}

void set_file_size(int fd, std::uint64_t size, const std::filesystem::path& path) {
  if (retry_interrupted([&] { return ::ftruncate(fd, static_cast<off_t>(size)); }) != 0)
    throw_errno("ftruncate", path, size);
}

void reserve_space(int fd, std::uint64_t size, const std::filesystem::path& path) {
  if (size == 0) return;
  // Some file systems begin anew after a signal: a timer faster than they are would go on for ever.
  for (int tries = 0; tries < kReserveTries; ++tries) {
    if (::fallocate(fd, 0, 0, static_cast<off_t>(size)) == 0) return;
    if (errno != EINTR) break;
  }
  // EOPNOTSUPP and the like are no verdict on the disk: the file is then written unreserved.
  if (is_final(errno)) throw_errno("fallocate", path, size);
}

void start_writeback(int fd, std::uint64_t offset, std::uint64_t length) noexcept {
  static_cast<void>(::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(length),
                                      SYNC_FILE_RANGE_WRITE));
}

double sync_file(int fd, bool with_metadata, const std::filesystem::path& path) {
  const Stopwatch watch;
  if (retry_interrupted([&] { return with_metadata ? ::fsync(fd) : ::fdatasync(fd); }) != 0)
    throw_errno(with_metadata ? "fsync" : "fdatasync", path);
  return watch.seconds();
}

void start_readahead(int fd, std::uint64_t offset, std::uint64_t length) noexcept {
  static_cast<void>(::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(length),
                                    POSIX_FADV_WILLNEED));
}

void pread_all(int fd, std::uint64_t offset, MutableByteSpan out,
               const std::filesystem::path& path) {
  const std::uint64_t wanted_end = offset + out.size();
  while (!out.empty()) {
    const ssize_t got = retry_interrupted(
        [&] { return ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset)); });
    if (got < 0) throw_errno("pread", path, offset);
    if (got == 0)
      throw FormatError(ErrorCode::truncated, "the file ends too early",
                        {.path = path.string(),
                         .offset = offset,
                         .value = "end of file",
                         .bound = "bytes up to " + std::to_string(wanted_end)});
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void pwrite_all(int fd, std::uint64_t offset, ByteSpan bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t got = retry_interrupted(
        [&] { return ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    const std::size_t written = checked_progress(got, "pwrite", offset, path);
    bytes = bytes.subspan(written);
    offset += written;
  }
}

void pwritev_all(int fd, std::uint64_t offset, std::span<const ByteSpan> pieces,
                 const std::filesystem::path& path) {
  std::vector<iovec> left;
  left.reserve(pieces.size());
  for (const ByteSpan piece : pieces)
    if (!piece.empty())
      left.push_back({const_cast<std::byte*>(piece.data()), piece.size()});  // only read from
  for (std::size_t first = 0; first < left.size();) {
    // The kernel takes IOV_MAX pieces a call, 1,024 on Linux.
    const int count = static_cast<int>(std::min<std::size_t>(left.size() - first, IOV_MAX));
    const ssize_t got = retry_interrupted(
        [&] { return ::pwritev(fd, &left[first], count, static_cast<off_t>(offset)); });
    const std::size_t written = checked_progress(got, "pwritev", offset, path);
    first = skip_bytes(left, first, written);
    offset += written;
  }
}

}  // namespace thalia::io
