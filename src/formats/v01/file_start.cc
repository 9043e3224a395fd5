// Looks at the first bytes of a file, inside its frame if it has one, without reading more than 1
// MiB: enough to tell a file's kind, cheap enough to ask for every file of a folder.
#include "formats/v01/file_start.h"

#include <algorithm>

#include "base/fail.h"
#include "container/wrap/seek_table.h"
#include "container/wrap/unwrap.h"
#include "io/file/posix_file.h"
#include "thalia/error.h"

namespace thalia::formats {
namespace {

// More than any codec takes in before it gives out the first bytes of a frame.
constexpr std::uint64_t kPeekedBytes = 1 << 20;

}  // namespace

std::vector<std::byte> read_file_start(const std::filesystem::path& path) {
  return read_file_start(io::open_for_reading(path).get(), path);
}

std::vector<std::byte> read_file_start(int fd, const std::filesystem::path& path) {
  const std::uint64_t size = io::file_size(fd, path);
  const auto front = container::find_wrapper(fd, path, size);
  const std::uint64_t begin = front ? front->offset : 0;
  std::vector<std::byte> bytes(
      std::min<std::uint64_t>(size - begin, front ? kPeekedBytes : kFileStartBytes));
  io::pread_all(fd, begin, bytes, path);
  if (!front) return bytes;
  return with_path(path.native(), [&] {
    return container::start_of_front_frame(bytes, front->codec, kFileStartBytes);
  });
}

}  // namespace thalia::formats
