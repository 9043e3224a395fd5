#include "formats/mithril_quantized/bincode.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/fail.h"

namespace thalia::formats::mithril_quantized {

BincodeReader::BincodeReader(ByteSpan frame, io::MemoryBudget& budget)
    : frame_(frame), stored_(frame.size()), budget_(budget) {
  if (codec::frame_kind(frame) != codec::FrameKind::zstd)
    throw CompressionError("zstd", "not a zstd frame", {.section = "frame", .offset = 0});
  decoder_ = codec::FrameDecoder::create(Codec::zstd);
}

// False where the content ends before `out` is full.
bool BincodeReader::fill(MutableByteSpan out, std::size_t& done) {
  while (done < out.size() && !ended_) {
    const auto step = decoder_->decode(frame_, out.subspan(done));
    frame_ = frame_.subspan(step.consumed);
    done += step.written;
    position_ += step.written;
    ended_ = step.frame_ended;
    if (!ended_ && step.consumed == 0 && step.written == 0)
      throw CompressionError("zstd", "the frame ends too early", {.section = "frame"});
  }
  return done == out.size();
}

void BincodeReader::read(std::string_view field, MutableByteSpan out) {
  std::size_t done = 0;
  if (fill(out, done)) return;
  throw FormatError(ErrorCode::truncated, "the content ends too early",
                    {.section = "content",
                     .field = std::string(field),
                     .offset = position_,
                     .value = fmt::format("{} bytes", done),
                     .bound = std::to_string(out.size())});
}

std::uint8_t BincodeReader::read_u8(std::string_view field) {
  std::array<std::byte, 1> byte{};
  read(field, byte);
  return std::to_integer<std::uint8_t>(byte[0]);
}

std::uint32_t BincodeReader::read_u32(std::string_view field) {
  format::le32 value(0);
  read(field, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

std::uint64_t BincodeReader::read_u64(std::string_view field) {
  format::le64 value(0);
  read(field, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

bool BincodeReader::read_option(std::string_view field) {
  const std::uint64_t at = position_;
  const std::uint8_t tag = read_u8(field);
  if (tag > 1)
    fail_field(ErrorCode::bad_value, "content", field, at, std::to_string(tag), "0 or 1");
  return tag == 1;
}

std::uint64_t BincodeReader::read_count(std::string_view field, std::uint64_t element_bytes) {
  const std::uint64_t at = position_;
  const std::uint64_t count = read_u64(field);
  const std::uint64_t most = codec::most_content(codec::FrameKind::zstd, stored_);
  const std::uint64_t left = most - std::min(most, position_);
  if (count > left / element_bytes) {
    fail_field(ErrorCode::out_of_bounds, "content", field, at, std::to_string(count),
               fmt::format("at most {}, by the frame's bytes", left / element_bytes));
  }
  return count;
}

void BincodeReader::finish() {
  std::array<std::byte, 1> more{};
  std::size_t done = 0;
  if (fill(more, done))
    fail_field(ErrorCode::inconsistent, "content", "", position_ - 1, "more bytes", "its end");
  if (!frame_.empty()) {
    throw CompressionError("zstd", "bytes follow the frame",
                           {.section = "frame",
                            .offset = stored_ - frame_.size(),
                            .value = fmt::format("{} bytes", frame_.size()),
                            .bound = "0"});
  }
}

}  // namespace thalia::formats::mithril_quantized
