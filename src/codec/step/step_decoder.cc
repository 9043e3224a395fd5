// The constructor checks whatever follows from the head; a chunk's states are checked before the
// kernels see them. Kernels stay within the chunk's bytes; that words and extra bits are all used,
// do not overlap, and that each state has come back to where the encoder began is checked at the
// end: so a chunk has one reading, and damage rarely passes unseen.
#include "codec/step/step_decoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "codec/frame/frame_error.h"
#include "codec/step/step_code.h"
#include "codec/step/step_tables.h"
#include "format/little_endian.h"

namespace thalia::codec {
namespace {

using format::le32;

constexpr std::uint8_t kLeastChunkLog2 = 12, kMostChunkLog2 = 24, kMostLanesLog2 = 5;

[[noreturn]] void fail_step(std::string_view what, std::uint64_t value, std::string bound) {
  fail_frame(kStepDeltaName, what, value, std::move(bound));
}

// Takes what it reads off `bytes`.
ByteSpan take_head(ByteSpan& bytes, std::size_t count) {
  if (bytes.size() < count)
    fail_step("bytes of the head", bytes.size(), fmt::format("{} more", count));
  const ByteSpan taken = bytes.first(count);
  bytes = bytes.subspan(count);
  return taken;
}

std::uint8_t field_in(ByteSpan& bytes, std::string_view what, std::uint8_t least,
                      std::uint8_t most) {
  const auto value = std::to_integer<std::uint8_t>(take_head(bytes, 1)[0]);
  if (value < least || value > most) fail_step(what, value, fmt::format("{} to {}", least, most));
  return value;
}

std::uint32_t number_at(ByteSpan bytes, std::size_t index) {
  le32 number;
  std::memcpy(&number, bytes.data() + index * sizeof(number), sizeof(number));
  return number;
}

}  // namespace

std::uint64_t step_most_head_bytes(std::uint64_t elements, std::uint64_t stored_bytes) noexcept {
  return std::min<std::uint64_t>(
      stored_bytes,
      4 + step_chunks(elements, kLeastChunkLog2) * sizeof(le32) + kStepMostTableBytes);
}

StepDecoder::StepDecoder(const StepKind& kind, std::uint64_t elements, ByteSpan head,
                         std::uint64_t stored_bytes, VectorSet set)
    : model_{.kind = kind, .first_class = 0, .lanes = 1, .tables = {}},
      kernels_(&step_kernels(set)),
      elements_(elements) {
  ByteSpan left = head;
  const std::uint8_t table = field_in(left, "table", 0, kStepExplicit);
  if (table >= kStepLevels && table != kStepExplicit)
    fail_step("table", table, fmt::format("0 to {}, or {}", kStepLevels - 1, kStepExplicit));
  model_.first_class = field_in(left, "first_class", 0, kind.is_float ? 255 : 0);
  model_.lanes = static_cast<std::uint8_t>(1u << field_in(left, "lanes_log2", 0, kMostLanesLog2));
  chunk_log2_ = field_in(left, "chunk_log2", kLeastChunkLog2, kMostChunkLog2);
  const std::uint64_t chunks = step_chunks(elements, chunk_log2_);
  // Held against the bytes before the product is made.
  if (chunks > 1 && chunks > left.size() / sizeof(le32))
    fail_step("bytes of the chunks' lengths", left.size(), fmt::format("4 for each of {}", chunks));
  const ByteSpan lengths =
      chunks > 1 ? take_head(left, static_cast<std::size_t>(chunks) * sizeof(le32)) : ByteSpan{};
  model_.tables =
      step_tables(table == kStepExplicit ? read_step_rows(left) : predefined_step_rows(table));
  begin_ = head.size() - left.size();
  std::uint64_t end = begin_;
  ends_.reserve(static_cast<std::size_t>(chunks));
  for (std::size_t i = 0; i < chunks; ++i) {
    end += chunks > 1 ? number_at(lengths, i) : stored_bytes - begin_;
    ends_.push_back(end);
  }
  if (end != stored_bytes) fail_step("end of the last chunk", end, std::to_string(stored_bytes));
}

StepDecoder::Chunk StepDecoder::chunk(std::uint64_t number) const noexcept {
  const std::uint64_t first = number << chunk_log2_;
  const auto index = static_cast<std::size_t>(number);
  const std::uint64_t offset = index == 0 ? begin_ : ends_[index - 1];
  return {.first = first,
          .elements = std::min(chunk_elements(), elements_ - first),
          .offset = offset,
          .length = ends_[index] - offset};
}

void StepDecoder::decode(ByteSpan stored, ByteSpan base, MutableByteSpan out) const {
  const std::size_t lanes = model_.lanes, width = model_.kind.bytes;
  if (stored.size() < lanes * sizeof(le32))
    fail_step("bytes of a chunk", stored.size(), fmt::format("{} or more", lanes * sizeof(le32)));
  std::array<std::uint32_t, kStepMostLanes> states{};
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    states[lane] = number_at(stored, lane);
    // Such states alone keep the arithmetic within 32 bits.
    if (states[lane] < kStepLow)
      fail_step("state", states[lane], fmt::format("{} or more", kStepLow));
  }
  const std::size_t count = out.size() / width;
  StepRun run{.model = model_,
              .begin = stored.data() + lanes * sizeof(le32),
              .end = stored.data() + stored.size(),
              .words = stored.data() + lanes * sizeof(le32),
              .bits = 0,
              .states = states.data()};
  // The kernel ends where it could read beyond the chunk; the rest goes one element at a time.
  const std::size_t done = kernels_->decode(run, base.data(), out.data(), count - count % lanes);
  if (!step_decode_some(run, base.data() + done * width, out.data() + done * width, count - done))
    fail_step("bytes left of a chunk", 0, "1 or more");
  const std::uint64_t extras = run.bits / 8 + (run.bits % 8 != 0);
  const auto left = static_cast<std::uint64_t>(run.end - run.words);
  if (left != extras) fail_step("bytes after the words", left, std::to_string(extras));
  if (run.bits % 8 != 0 && std::to_integer<unsigned>(*(run.end - extras)) >> (run.bits % 8) != 0)
    fail_step("spare bits", 1, "0");
  for (std::size_t lane = 0; lane < lanes; ++lane)
    if (states[lane] != kStepLow) fail_step("last state", states[lane], std::to_string(kStepLow));
}

void step_decode(const StepKind& kind, ByteSpan stored, ByteSpan base, MutableByteSpan out,
                 VectorSet set) {
  const StepDecoder decoder(kind, base.size() / kind.bytes, stored, stored.size(), set);
  for (std::uint64_t i = 0; i < decoder.chunks(); ++i) {
    const StepDecoder::Chunk chunk = decoder.chunk(i);
    const auto begin = static_cast<std::size_t>(chunk.first) * kind.bytes;
    const auto length = static_cast<std::size_t>(chunk.elements) * kind.bytes;
    decoder.decode(stored.subspan(static_cast<std::size_t>(chunk.offset),
                                  static_cast<std::size_t>(chunk.length)),
                   base.subspan(begin, length), out.subspan(begin, length));
  }
}

}  // namespace thalia::codec
