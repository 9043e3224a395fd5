// Picks the class behind FileBytes. Mapped and copied files differ in what a failing disk does to
// the reader, not in what they return. A file that is too large for the address space that a
// process may have is copied, which takes some for what is read alone.
#include "io/file/file_bytes.h"

#include <algorithm>
#include <limits>

#include "base/fail.h"
#include "io/file/copied_file.h"
#include "io/file/mapped_file.h"
#include "io/file/open_descriptor.h"
#include "io/file/posix_file.h"
#include "io/system/posix_error.h"

namespace thalia::io {

std::shared_ptr<const FileBytes> FileBytes::open(const std::filesystem::path& path, Access access) {
  return open_descriptor(open_for_reading(path), path, access);
}

std::shared_ptr<const FileBytes> open_descriptor(UniqueFd fd, const std::filesystem::path& path,
                                                 Access access) {
  if (access == Access::writable) return MappedFile::open(std::move(fd), path, access);
  if (access == Access::mapped) {
    if (auto file = MappedFile::open_if_it_fits(fd, path, access)) return file;
  }
  return CopiedFile::open(std::move(fd), path);
}

std::shared_ptr<const FileBytes> open_again(const FileBytes& file) {
  // A duplicate of the descriptor, not the path: the path may name another file by now. The new
  // object takes the length of the file as it is at this moment.
  return open_descriptor(duplicate(file.fd(), file.path()), file.path(), file.access());
}

std::shared_ptr<const FileBytes> FileBytes::open_whole(const std::filesystem::path& path,
                                                       Access access,
                                                       const std::stop_token& cancel) {
  auto file = open(path, access);
  file->touch_whole(cancel);
  return file;
}

void FileBytes::touch_whole(const std::stop_token& cancel) const {
  // How long a stop may wait: 16 MiB take a few milliseconds.
  constexpr std::uint64_t kPart = 16 << 20;
  for (std::uint64_t at = 0; at < bytes_.size(); at += kPart) {
    stop_if_cancelled(cancel);
    touch(at, std::min(kPart, bytes_.size() - at));
  }
}

void FileBytes::read(std::uint64_t offset, MutableByteSpan out) const {
  fill_descriptor(offset, out.size());
  pread_all(fd(), begin_ + offset, out, path());
}

std::size_t addressable_size(int fd, const std::filesystem::path& path) {
  const std::uint64_t size = file_size(fd, path);
  // Half of it: the other is the kernel's, and rounding up to pages must not wrap.
  if (size > std::numeric_limits<std::size_t>::max() / 2) throw_errno("mmap", path, {}, EFBIG);
  return static_cast<std::size_t>(size);
}

}  // namespace thalia::io
