// A frame says how many bytes it holds, and is decoded only if a change of this tensor can have so
// many: what a file claims never decides how much memory is taken.
#include "formats/weight_sync/byte_change.h"

#include <fmt/format.h>

#include <cstring>

#include "base/byte_xor.h"
#include "base/fail.h"
#include "codec/frame/zstd_decoder.h"
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

std::uint32_t word_at(ByteSpan bytes, std::uint64_t i) noexcept {
  format::le32 word;
  std::memcpy(&word, bytes.data() + i * kWord, kWord);
  return word;
}

void put_word(std::vector<std::byte>& out, std::uint64_t i, std::uint64_t value) noexcept {
  const format::le32 word = static_cast<std::uint32_t>(value);
  std::memcpy(out.data() + i * kWord, &word, kWord);
}

std::uint64_t count_changed(ByteSpan before, ByteSpan after) noexcept {
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < after.size(); ++i) changed += before[i] != after[i] ? 1 : 0;
  return changed;
}

std::vector<std::byte> list_of(ByteSpan before, ByteSpan after, std::uint64_t changed) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  if (after.size() > kMost || changed >= kMost) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "positions of 32 bits do not reach all bytes of the tensor",
                           {.field = "overwrite",
                            .value = fmt::format("{} bytes", after.size()),
                            .bound = fmt::format("{}", kMost)});
  }
  std::vector<std::byte> raw;
  raw.resize(kWord + changed * (kWord + 1));
  put_word(raw, 0, changed);
  std::uint64_t listed = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (before[i] == after[i]) continue;
    put_word(raw, 1 + listed, i);
    raw[kWord + changed * kWord + listed] = after[i];
    ++listed;
  }
  return raw;
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
                           std::vector<std::byte>& out) {
  if (after.empty() || std::memcmp(before.data(), after.data(), after.size()) == 0) return 0;
  const std::uint64_t changed = count_changed(before, after);
  std::vector<std::byte> raw;
  if (encoding == ByteEncoding::overwrite) {
    raw = list_of(before, after, changed);
  } else {
    raw.assign(after.begin(), after.end());
    xor_into(raw, before);
  }
  codec::zstd_encode(kLevel, raw, out);
  return changed;
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
