#include "interop/file_start.h"

#include <algorithm>

#include "codec/frame.h"
#include "container/unwrap.h"
#include "io/posix_file.h"
#include "thalia/error.h"

namespace thalia::interop {
namespace {

// Of a frame: more than any codec takes in before it gives out its first bytes.
constexpr std::uint64_t kPeekedBytes = 1 << 20;

// As far as the frame gives it.
std::vector<std::byte> start_of_frame(ByteSpan frame, format::Codec codec) {
  std::vector<std::byte> start(kFileStartBytes);
  const auto decoder = codec::FrameDecoder::create(codec);
  std::size_t written = 0;
  while (written < start.size()) {
    const auto step = decoder->decode(frame, MutableByteSpan(start).subspan(written));
    frame = frame.subspan(step.consumed);
    written += step.written;
    if (step.frame_ended || (step.consumed == 0 && step.written == 0)) break;
  }
  start.resize(written);
  return start;
}

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
  try {
    return start_of_frame(bytes, *codec);
  } catch (Error& error) {
    error.add_path(path.string());
    throw;
  }
}

}  // namespace thalia::interop
