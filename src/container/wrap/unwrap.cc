// Decodes one frame that is in memory as a whole, as files of version 0.1 are read. The frame may
// lie about its size, so the first allocation is checked against what its bytes can hold and
// against the limit; without a size the room doubles, up to the limit, as bytes come.
#include "container/wrap/unwrap.h"

#include <algorithm>

#include "base/fail.h"
#include "codec/frame/frame.h"
#include "io/memory/allocation_limit.h"

namespace thalia::container {
namespace {

constexpr std::uint64_t kFirstRoom = 64 << 10;  // if the frame does not say what it holds

// Room for what the frame says that it holds: a lie is known before memory is asked for.
std::uint64_t first_room(ByteSpan file, std::uint64_t most) {
  const auto size = codec::content_size(file.first(std::min(file.size(), codec::kFrameStart)));
  if (!size) return std::min(kFirstRoom, most);
  const std::uint64_t possible = codec::most_content(codec::frame_kind(file), file.size());
  if (*size > possible) {
    fail_field(ErrorCode::bad_value, "wrapper", "content_size", 0, std::to_string(*size),
               fmt::format("at most {} from {} bytes", possible, file.size()));
  }
  if (*size > most) fail_limit("wrapper", "max_allocation_bytes", *size, most);
  return *size;
}

}  // namespace

std::optional<Codec> wrapper_codec(const std::filesystem::path& name) {
  const std::filesystem::path ending = name.extension();
  if (ending == ".zst") return Codec::zstd;
  if (ending == ".lz4") return Codec::lz4;
  return std::nullopt;
}

std::vector<std::byte> start_of_front_frame(ByteSpan file, Codec codec, std::size_t most) {
  std::vector<std::byte> start(most);
  const auto decoder = codec::FrameDecoder::create(codec);
  std::size_t written = 0;
  while (written < start.size()) {
    const auto step = decoder->decode(file, MutableByteSpan(start).subspan(written));
    file = file.subspan(step.consumed);
    written += step.written;
    // A frame that does not go on is no error here: unwrap_front_frame() reports it.
    if (step.frame_ended || (step.consumed == 0 && step.written == 0)) break;
  }
  start.resize(written);
  return start;
}

Unwrapped unwrap_front_frame(ByteSpan file, const ReadLimits& limits) {
  const codec::FrameKind kind = codec::frame_kind(file);
  if (kind != codec::FrameKind::zstd && kind != codec::FrameKind::lz4) {
    throw FormatError(ErrorCode::bad_magic, "no zstd or lz4 frame",
                      {.section = "wrapper", .field = "magic", .offset = 0});
  }
  const std::uint64_t most = io::allocation_limit(limits, file.size());
  const Codec codec = kind == codec::FrameKind::lz4 ? Codec::lz4 : Codec::zstd;
  const auto decoder = codec::FrameDecoder::create(codec);
  Unwrapped out{.codec = codec, .bytes = {}, .frame = {}, .trailing = file};
  std::uint64_t written = 0;
  try {
    out.bytes.resize(first_room(file, most));
    while (true) {
      const auto step = decoder->decode(out.trailing, MutableByteSpan(out.bytes).subspan(written));
      out.trailing = out.trailing.subspan(step.consumed);
      written += step.written;
      if (step.frame_ended) break;
      if (step.consumed != 0 || step.written != 0) continue;
      // No progress: with room to write in, the input has ended; without, there is more content.
      if (written < out.bytes.size()) {
        throw FormatError(ErrorCode::truncated, "the frame does not end",
                          {.offset = std::uint64_t{file.size()}});
      }
      if (written == most) fail_limit("wrapper", "max_allocation_bytes", written + 1, most);
      out.bytes.resize(std::min(std::max(2 * written, kFirstRoom), most));
    }
  } catch (Error& error) {
    error.add_section("wrapper");
    throw;
  }
  out.bytes.resize(written);
  out.frame = file.first(file.size() - out.trailing.size());
  return out;
}

}  // namespace thalia::container
