// What a file is, its first bytes decide and never its name. The order: a side file; then a packed
// delta; then frames, which may hold a delta but no further frames; then a delta. All else is taken
// for a plain file, and its header is refused later if it is not one. Each layer is an
// io::FileBytes over the one below, which it keeps alive if it still reads from it.
#include "container/file/open_bytes.h"

#include <algorithm>

#include "codec/frame/frame.h"
#include "container/file/delta_prefix.h"
#include "container/file/meta_file.h"
#include "container/file/wrapped.h"
#include "container/wrap/packed.h"
#include "container/wrap/seek_table.h"
#include "io/file/posix_file.h"
#include "thalia/error.h"

namespace thalia::container {
namespace {

constexpr std::uint64_t kMagicLength = 4;

[[noreturn]] void fail_delta(const std::filesystem::path& path) {
  throw UnsupportedError(ErrorCode::unsupported_feature,
                         "a delta is not changed in place, make it anew",
                         {.path = path.string(), .section = "delta"});
}

[[noreturn]] void fail_not_plain(const std::filesystem::path& path, io::Backing backing) {
  const bool partial = backing == io::Backing::partial;
  throw UnsupportedError(ErrorCode::unsupported_feature,
                         partial ? "a side file is not changed in place"
                                 : "a compressed file is not changed in place, decompress it first",
                         {.path = path.string(), .section = partial ? "side_file" : "wrapper"});
}

}  // namespace

std::shared_ptr<const io::FileBytes> open_bytes(const io::InputFile& input, Access access,
                                                const ReadLimits& limits) {
  return contents_of(input.bytes(access), limits);
}

std::shared_ptr<const io::FileBytes> contents_of(std::shared_ptr<const io::FileBytes> file,
                                                 const ReadLimits& limits) {
  const std::uint64_t size = file->bytes().size();
  const ByteSpan start = file->touched(0, std::min(size, kMagicLength));
  if (begins_side_file(start)) return MetaFile::open(*file, limits);
  if (begins_packed(start)) return container_of(open_packed(*file, limits));
  if (codec::frame_kind(start) == codec::FrameKind::none) return container_of(std::move(file));
  const auto front = find_wrapper(file->fd(), file->path(), size);
  // It begins with a frame to skip and has no other after it: the header check refuses it.
  if (!front) return file;
  return container_of(WrappedFile::open(std::move(file), front->codec, limits));
}

void require_plain(const io::FileBytes& file) {
  if (file.backing() == io::Backing::file) return;
  if (file.backing() == io::Backing::decoded &&
      is_packed(io::open_for_reading(file.path()).get(), file.path()))
    fail_delta(file.path());
  fail_not_plain(file.path(), file.backing());
}

void require_plain(ByteSpan start, const std::filesystem::path& path) {
  if (begins_side_file(start)) fail_not_plain(path, io::Backing::partial);
  if (codec::frame_kind(start) != codec::FrameKind::none)
    fail_not_plain(path, io::Backing::decoded);
  if (is_delta(start) || begins_packed(start)) fail_delta(path);
}

}  // namespace thalia::container
