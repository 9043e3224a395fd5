// Decodes frame after frame from the front, for files without a seek table. `left_` is the part of
// the buffer that is not decoded yet; refill() runs only when it holds less than a magic number, so
// begin_frame() always sees the four bytes that tell what follows, unless the file ends. Progress
// is certain: a step of the decoder that takes and gives nothing is a frame that does not end.
#include "container/wrap/frame_stream.h"

#include <algorithm>
#include <string>

#include "base/fail.h"

namespace thalia::container {
namespace {

constexpr std::uint64_t kBuffer = 1 << 20;
constexpr std::size_t kFrameStart = 4;

}  // namespace

FrameStream::FrameStream(const FramedFile& file, const SeekTable* table)
    : file_(file),
      table_(table),
      decoder_(codec::FrameDecoder::create(file.codec)),
      buffer_(std::clamp<std::uint64_t>(file.size, kFrameStart, kBuffer)) {}

// Moves what is left, less than a magic number, to the front and fills the buffer after it.
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
  frame_content_ = 0;
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
             // The original program puts the 32 bytes of a SHA-256 after its only frame.
             file_.size - frame_at_ == 32 && frames_ == 1
                 ? "a checksum after the frame: a file of version 0.1"
                 : "");
}

void FrameStream::fail_frame_count() const {
  fail_field(ErrorCode::bad_compression, "wrapper", "", consumed(),
             fmt::format("{} frames up to here", frames_), std::to_string(table_->size()),
             "not the frames that the seek table has");
}

// Each frame is where the table has it, with the lengths that the table has: as far as it was
// decoded, or at its end.
void FrameStream::check_with_table(bool frame_ended) const {
  if (table_ == nullptr) return;
  if (frames_ >= table_->size()) fail_frame_count();
  const SeekTable::Frame expected = table_->frame(frames_);
  const std::uint64_t stored = consumed() - frame_at_;
  const bool fits =
      frame_ended ? stored == expected.stored_length && frame_content_ == expected.content_length
                  : stored <= expected.stored_length && frame_content_ <= expected.content_length;
  if (fits && frame_at_ == expected.stored_offset) return;
  fail_field(ErrorCode::bad_compression, "wrapper", "", frame_at_,
             fmt::format("{} bytes with a content of {}{}", stored, frame_content_,
                         frame_ended ? "" : " or more"),
             fmt::format("a frame of {} bytes at {}, with a content of {}", expected.stored_length,
                         expected.stored_offset, expected.content_length),
             "not the frame that the seek table has");
}

std::size_t FrameStream::read(MutableByteSpan room) {
  std::size_t written = 0;
  while (written < room.size()) {
    if (left_.size() < kFrameStart) refill();
    if (!inside_) {
      if (left_.empty()) {
        if (table_ != nullptr && frames_ != table_->size()) fail_frame_count();
        break;
      }
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
    frame_content_ += step.written;
    if (!skippable_) check_with_table(step.frame_ended);
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
