// Looks at the first bytes of a file, inside its frame if it has one, without reading more than 1
// MiB: enough to tell a file's kind, cheap enough to ask for every file of a folder.
#include "interop/v01/file_start.h"

#include <algorithm>

#include "base/fail.h"
#include "container/wrap/unwrap.h"
#include "io/posix_file.h"
#include "thalia/error.h"

namespace thalia::interop {
namespace {

// More than any codec takes in before it gives out the first bytes of a frame.
constexpr std::uint64_t kPeekedBytes = 1 << 20;

}  // namespace

std::vector<std::byte> read_file_start(const std::filesystem::path& path) {
  const io::UniqueFd fd = io::open_for_reading(path);
  std::vector<std::byte> bytes(
      std::min<std::uint64_t>(io::file_size(fd.get(), path), kFileStartBytes));
  io::pread_all(fd.get(), 0, bytes, path);
  const auto codec = container::wrapper_codec(bytes);
  if (!codec) return bytes;
  bytes.resize(std::min<std::uint64_t>(io::file_size(fd.get(), path), kPeekedBytes));
  io::pread_all(fd.get(), 0, bytes, path);
  return with_path(path.native(),
                   [&] { return container::start_of_front_frame(bytes, *codec, kFileStartBytes); });
}

}  // namespace thalia::interop
