#include "container/wrap/frame_stream.h"

#include <algorithm>
#include <string>

#include "base/fail.h"

namespace thalia::container {
namespace {

constexpr std::uint64_t kBuffer = 1 << 20;
constexpr std::size_t kFrameStart = 4;

}  // namespace

FrameStream::FrameStream(const WrappedSource& file)
    : file_(file),
      decoder_(codec::FrameDecoder::create(file.codec)),
      buffer_(std::clamp<std::uint64_t>(file.size, kFrameStart, kBuffer)) {}

// What is left moves to the front: less than a magic number.
void FrameStream::refill() {
  std::copy(left_.begin(), left_.end(), buffer_.begin());
  const std::size_t kept = left_.size();
  const auto more = static_cast<std::size_t>(
      std::min<std::uint64_t>(buffer_.size() - kept, file_.size - offset_));
  io::pread_all(file_.fd, offset_, MutableByteSpan(buffer_).subspan(kept, more), file_.path);
  offset_ += more;
  left_ = ByteSpan(buffer_).first(kept + more);
}

void FrameStream::begin_frame() {
  frame_at_ = consumed();
  const codec::FrameKind kind = codec::frame_kind(left_);
  const codec::FrameKind own =
      file_.codec == Codec::lz4 ? codec::FrameKind::lz4 : codec::FrameKind::zstd;
  skippable_ = kind == codec::FrameKind::skippable;
  if (kind == own || skippable_) {
    inside_ = true;
    return;
  }
  fail_field(ErrorCode::bad_value, "wrapper", "", frame_at_,
             fmt::format("{} bytes that begin no {} frame", file_.size - frame_at_,
                         own == codec::FrameKind::lz4 ? "lz4" : "zstd"),
             "frames up to the end",
             file_.size - frame_at_ == 32 && frames_ == 1
                 ? "a checksum behind the frame: a file of version 0.1"
                 : "");
}

std::size_t FrameStream::read(MutableByteSpan room) {
  std::size_t written = 0;
  while (written < room.size()) {
    if (left_.size() < kFrameStart) refill();
    if (!inside_) {
      if (left_.empty()) break;
      begin_frame();
    }
    codec::FrameDecoder::Step step;
    try {
      step = decoder_->decode(left_, room.subspan(written));
    } catch (const FormatError& error) {
      fail_field(error.code(), "wrapper", "", frame_at_, error.context().value,
                 error.context().bound, error.message());
    }
    left_ = left_.subspan(step.consumed);
    written += step.written;
    if (step.frame_ended) {
      inside_ = false;
      if (!skippable_) ++frames_;
    } else if (step.consumed == 0 && step.written == 0) {
      throw FormatError(ErrorCode::truncated, "the frame does not end",
                        {.section = "wrapper", .offset = frame_at_});
    }
  }
  return written;
}

}  // namespace thalia::container
