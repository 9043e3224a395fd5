// Frames are decoded into memory, to the offsets that their content has in the plain file. With a
// seek table a frame is decoded when one of its bytes is first touched; without one all content is
// decoded at open, as nothing says where a frame begins. A frame counts as done after its last byte
// is in place, and is never decoded again. One that fails to decode does not count, so every later
// touch throws again.
#include "container/file/wrapped.h"

#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "container/file/delta_prefix.h"
#include "container/wrap/frame_stream.h"
#include "format/header.h"
#include "format/validate_header.h"
#include "io/file/posix_file.h"
#include "io/memory/allocation_limit.h"

namespace thalia::container {
namespace {

constexpr std::size_t kPiece = 256 << 10;

// Refuses another format by the first 256 bytes, before more is decoded. A delta begins with a
// header of its own, and what is shorter is refused when its header is read.
void check_identity(ByteSpan start) {
  format::Header header{};
  if (start.size() < sizeof header || is_delta(start)) return;
  std::memcpy(&header, start.data(), sizeof header);
  format::validate_identity(header);
}

}  // namespace

WrappedFile::WrappedFile(std::shared_ptr<const io::FileBytes> file, Codec codec,
                         std::optional<SeekTable> table, io::UniqueFd memory)
    : FileBytes(Access::copied, file->path(), std::move(memory)),
      file_(std::move(file)),
      codec_(codec),
      table_(std::move(table)) {}

std::shared_ptr<const WrappedFile> WrappedFile::open(std::shared_ptr<const io::FileBytes> file,
                                                     Codec codec, const ReadLimits& limits) {
  auto table = SeekTable::read({file->fd(), file->path(), file->bytes().size(), codec}, limits);
  std::shared_ptr<WrappedFile> out(
      new WrappedFile(std::move(file), codec, std::move(table), io::create_memory_file()));
  std::uint64_t length;
  if (out->table_) {
    length = out->table_->content_bytes();
    io::MemoryBudget(limits, out->file_->bytes().size()).take("wrapper", length);
    out->done_ = std::make_unique<std::atomic<bool>[]>(out->table_->size());
  } else {
    length = out->decode_all(limits);
  }
  out->memory_.emplace(out->fd(), length);
  out->bytes_ = out->memory_->bytes();
  return out;
}

std::uint64_t WrappedFile::decode_all(const ReadLimits& limits) {
  io::MemoryBudget budget(limits, file_->bytes().size());
  FrameStream stream(source());
  std::vector<std::byte> piece(kPiece);
  std::uint64_t length = 0;
  while (const std::size_t got = stream.read(piece)) {
    if (length == 0) check_identity(ByteSpan(piece).first(got));
    // Counted piece by piece, as nothing says how much there will be.
    budget.take("wrapper", got);
    io::pwrite_all(fd(), length, ByteSpan(piece).first(got), path());
    length += got;
  }
  decoded_frames_ = stream.frames();
  resident_ = length;
  return length;
}

void WrappedFile::fill(std::uint64_t offset, std::uint64_t length) const {
  if (length == 0 || !table_) return;
  const std::size_t last = table_->frame_at(offset + length - 1);
  for (std::size_t i = table_->frame_at(offset); i <= last; ++i)
    if (!done_[i].load(std::memory_order_acquire)) decode(i);
}

void WrappedFile::decode(std::size_t i) const {
  // A file may have millions of frames, so they share 64 locks. At worst a thread waits for a frame
  // that it does not need.
  const std::lock_guard lock(locks_[i % locks_.size()]);
  if (done_[i].load(std::memory_order_relaxed)) return;
  const SeekTable::Frame frame = table_->frame(i);
  std::vector<std::byte> stored;
  decode_frame(source(), frame, stored,
               memory_->bytes().subspan(frame.content_offset, frame.content_length));
  resident_ += frame.content_length;
  ++decoded_frames_;
  done_[i].store(true, std::memory_order_release);
}

}  // namespace thalia::container
