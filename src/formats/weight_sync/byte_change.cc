// A frame says how many bytes it holds, and is decoded only if a change of this tensor can have so
// many: what a file claims never decides how much memory is taken.
#include "formats/weight_sync/byte_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/byte_xor.h"
#include "base/fail.h"
#include "codec/changes/changed_elements.h"
#include "codec/frame/zstd_decoder.h"
#include "codec/frame/zstd_encoder.h"
#include "codec/frame/zstd_frame.h"
#include "format/little_endian.h"
#include "formats/zip/deflate.h"
#include "integrity/blake3.h"
#include "integrity/content_hash.h"
#include "thalia/text.h"

namespace thalia::formats::weight_sync {
namespace {

constexpr int kLevel = 1;
constexpr std::uint64_t kWord = sizeof(std::uint32_t);
// What is made of a change at a time, whatever its length.
constexpr std::uint64_t kPart = 256 << 10;

std::uint32_t word_at(ByteSpan bytes, std::uint64_t i) noexcept {
  format::le32 word;
  std::memcpy(&word, bytes.data() + i * kWord, kWord);
  return word;
}

std::uint64_t count_changed(ByteSpan before, ByteSpan after) noexcept {
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < after.size(); ++i) changed += before[i] != after[i] ? 1 : 0;
  return changed;
}

// Calls use(at, length) for the parts of both states that are read together.
template <typename Use>
void for_each_part(std::uint64_t size, std::uint64_t part, const Use& use) {
  for (std::uint64_t at = 0; at < size; at += part) use(at, std::min(part, size - at));
}

// Calls use(at, positions, values) for parts of both states, with the bytes of each that differ.
template <typename Use>
void for_each_changed(ByteSpan before, ByteSpan after, const Use& use) {
  struct Changed {
    std::array<std::uint16_t, codec::kMostCompared + codec::kChangedSlack> positions;
    std::array<std::byte, codec::kMostCompared + codec::kChangedSlack> values;
  };
  const auto found = std::make_unique<Changed>();
  for_each_part(after.size(), codec::kMostCompared, [&](std::uint64_t at, std::uint64_t length) {
    const std::size_t count =
        codec::find_changed(before.subspan(at, length), after.subspan(at, length), 1,
                            {.positions = found->positions.data(), .values = found->values.data()});
    use(at, std::span(found->positions).first(count), ByteSpan(found->values).first(count));
  });
}

void check_list(std::uint64_t size, std::uint64_t changed) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  if (size > kMost || changed >= kMost) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "positions of 32 bits do not reach all bytes of the tensor",
                           {.field = "overwrite",
                            .value = fmt::format("{} bytes", size),
                            .bound = fmt::format("{}", kMost)});
  }
}

// A frame that is being made.
class Frame {
 public:
  Frame(std::uint64_t content_bytes, const std::function<void(ByteSpan piece)>& sink)
      : sink_(sink) {
    encoder_.expect(content_bytes);
  }
  void add(ByteSpan content) { encoder_.write(content, sink_); }
  void finish() { encoder_.finish(sink_); }

 private:
  const std::function<void(ByteSpan piece)>& sink_;
  codec::ZstdEncoder encoder_{kLevel};
};

std::uint64_t encode_list(ByteSpan before, ByteSpan after,
                          const std::function<void(ByteSpan piece)>& sink) {
  std::uint64_t changed = 0;
  for_each_changed(before, after, [&](auto, auto positions, auto) { changed += positions.size(); });
  check_list(after.size(), changed);
  Frame frame(kWord + changed * (kWord + 1), sink);
  std::vector<format::le32> words{format::le32(static_cast<std::uint32_t>(changed))};
  for_each_changed(before, after, [&](std::uint64_t at, auto positions, auto) {
    for (const std::uint16_t position : positions)
      words.emplace_back(static_cast<std::uint32_t>(at + position));
    frame.add(std::as_bytes(std::span(words)));
    words.clear();
  });
  for_each_changed(before, after, [&](auto, auto, ByteSpan values) { frame.add(values); });
  frame.finish();
  return changed;
}

std::uint64_t encode_difference(ByteSpan before, ByteSpan after,
                                const std::function<void(ByteSpan piece)>& sink) {
  Frame frame(after.size(), sink);
  std::uint64_t changed = 0;
  std::vector<std::byte> difference(std::min(kPart, std::uint64_t{after.size()}));
  for_each_part(after.size(), kPart, [&](std::uint64_t at, std::uint64_t length) {
    const ByteSpan old = before.subspan(at, length), now = after.subspan(at, length);
    const auto part = MutableByteSpan(difference).first(length);
    changed += count_changed(old, now);
    xor_of(old, now, part);
    frame.add(part);
  });
  frame.finish();
  return changed;
}

// What the frame holds, no more than a change of so many bytes can be.
std::vector<std::byte> content_of(ByteSpan frame, std::uint64_t least, std::uint64_t most,
                                  io::MemoryBudget& budget) {
  const auto size = codec::zstd_content_size(frame);
  if (!size || *size < least || *size > most) {
    throw FormatError(
        ErrorCode::bad_value, "",
        {.section = "delta",
         .field = "content size",
         .value = size ? std::to_string(*size) : "none",
         .bound = least == most ? std::to_string(most) : fmt::format("{} to {}", least, most)});
  }
  auto content = budget.vector<std::byte>("delta", *size);
  codec::zstd_decode(frame, content);
  return content;
}

void overwrite(ByteSpan list, MutableByteSpan state) {
  const std::uint64_t count = word_at(list, 0);
  const auto refuse = [](std::string_view field, std::uint64_t value, std::string bound) {
    throw FormatError(ErrorCode::bad_value, "",
                      {.section = "delta",
                       .field = std::string(field),
                       .value = std::to_string(value),
                       .bound = std::move(bound)});
  };
  if (list.size() != kWord + count * (kWord + 1))
    refuse("count", count, fmt::format("as many as {} bytes hold", list.size()));
  const ByteSpan positions = list.subspan(kWord, count * kWord);
  const ByteSpan values = list.subspan(kWord + count * kWord);
  std::uint64_t least = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t position = word_at(positions, i);
    if (position < least || position >= state.size())
      refuse("position", position, fmt::format("at least {}, below {}", least, state.size()));
    state[position] = values[i];
    least = position + 1;
  }
}

}  // namespace

std::uint64_t encode_bytes(ByteEncoding encoding, ByteSpan before, ByteSpan after,
                           const std::function<void(ByteSpan piece)>& sink) {
  return encoding == ByteEncoding::overwrite ? encode_list(before, after, sink)
                                             : encode_difference(before, after, sink);
}

// Blocks that cannot be compressed are stored, with three bytes for each of at most 128 KiB.
std::uint64_t most_frame_bytes(ByteEncoding encoding, std::uint64_t size) noexcept {
  const std::uint64_t most =
      encoding == ByteEncoding::overwrite ? kWord + (kWord + 1) * size : size;
  return most + most / 1024 + 64;
}

void apply_bytes(ByteEncoding encoding, ByteSpan frame, MutableByteSpan state,
                 io::MemoryBudget& budget) {
  const std::uint64_t size = state.size();
  if (encoding == ByteEncoding::xor_bytes) {
    xor_into(state, content_of(frame, size, size, budget));
  } else {
    overwrite(content_of(frame, kWord, kWord + (kWord + 1) * size, budget), state);
  }
}

std::string checksum_text(ByteChecksum kind, ByteSpan bytes) {
  switch (kind) {
    case ByteChecksum::xxh3_128:
      return hex(integrity::xxh3_128(bytes).bytes);
    case ByteChecksum::blake3:
      return hex(integrity::blake3(bytes).bytes);
    case ByteChecksum::adler32:
      break;
  }
  return fmt::format("{:08x}", adler32_of(bytes));
}

}  // namespace thalia::formats::weight_sync
