// Everything that a seek table claims is checked before the table is returned: its place at the end
// of the file, its size against the limit, each frame's lengths, and that the frames fill the file
// up to the table. Then sums do not overflow and a frame's content is at most what its stored bytes
// can hold, so callers allocate by it. Only decoding shows whether a frame really has that content;
// decode_frame() checks it. docs/format/format.md, "Wrappers".
#include "container/wrap/seek_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>

#include "base/fail.h"
#include "codec/frame/frame.h"
#include "format/overlay.h"
#include "io/memory/allocation_limit.h"

namespace thalia::container {
namespace {

using format::SeekEntry;
using format::SeekFooter;
using format::SkippableHeader;

constexpr std::uint8_t kReserved = 0x7c;  // of the descriptor
constexpr std::uint64_t kChecksumLength = 4;

const std::uint8_t (&seek_magic(Codec codec))[4] {
  return codec == Codec::lz4 ? format::kLz4SeekMagic : format::kZstdSeekMagic;
}

codec::FrameKind kind_of(Codec codec) {
  return codec == Codec::lz4 ? codec::FrameKind::lz4 : codec::FrameKind::zstd;
}

[[noreturn]] void fail_table(std::string_view field, std::uint64_t offset, std::string value,
                             std::string bound) {
  fail_field(ErrorCode::bad_value, "wrapper", field, offset, std::move(value), std::move(bound));
}

template <typename T>
T read_struct(const FramedFile& file, std::uint64_t offset) {
  T out;
  io::pread_all(file.fd, offset, std::as_writable_bytes(std::span(&out, 1)), file.path);
  return out;
}

// Whether a skippable frame with the magic of seek tables ends where the file ends, wherever it
// begins: then a footer that does not fit is a broken table, and not the end of some other frame.
bool ends_with_table(const FramedFile& file) {
  constexpr std::uint64_t kSearchBytes = 1 << 20;
  constexpr std::uint64_t kHeaderBytes = sizeof(SkippableHeader);
  std::vector<std::byte> piece;
  std::uint64_t end = file.size - sizeof(SeekFooter);  // headers that end up to here are looked at
  while (end >= kHeaderBytes && file.size - end <= std::numeric_limits<std::uint32_t>::max()) {
    const std::uint64_t begin = end - std::min(end, kSearchBytes);
    piece.resize(end - begin);
    io::pread_all(file.fd, begin, piece, file.path);
    for (std::uint64_t at = piece.size() - kHeaderBytes + 1; at-- > 0;) {
      const auto& header = format::overlay<SkippableHeader>(piece, at, "wrapper");
      if (std::memcmp(header.magic, format::kSeekTableMagic, sizeof header.magic) == 0 &&
          header.length == file.size - (begin + at + kHeaderBytes))
        return true;
    }
    if (begin == 0) break;
    end = begin + kHeaderBytes - 1;
  }
  return false;
}

// Looks at two frames at most: a skippable frame may come before the first real one. A longer
// row of them is refused, as a file of many tiny ones would take a read for each.
// `read(offset, bytes)` fills bytes of the file.
template <typename Read>
std::optional<FrontFrame> find_front_frame(std::uint64_t size, const Read& read) {
  std::uint64_t offset = 0;
  for (int frame = 0; frame < 2; ++frame) {
    std::array<std::byte, sizeof(SkippableHeader)> start{};
    if (offset > size) return std::nullopt;
    const auto length =
        static_cast<std::size_t>(std::min<std::uint64_t>(size - offset, start.size()));
    read(offset, MutableByteSpan(start).first(length));
    switch (codec::frame_kind(ByteSpan(start).first(length))) {
      case codec::FrameKind::zstd:
        return FrontFrame{Codec::zstd, offset};
      case codec::FrameKind::lz4:
        return FrontFrame{Codec::lz4, offset};
      case codec::FrameKind::none:
        return std::nullopt;
      case codec::FrameKind::skippable:
        break;
    }
    const auto& header = format::overlay<SkippableHeader>(start, 0, "wrapper");
    offset = sizeof header + header.length;
  }
  return std::nullopt;
}

}  // namespace

std::optional<FrontFrame> find_wrapper(int fd, const std::filesystem::path& path,
                                       std::uint64_t size) {
  return find_front_frame(size, [&](std::uint64_t offset, MutableByteSpan bytes) {
    io::pread_all(fd, offset, bytes, path);
  });
}

std::optional<FrontFrame> find_wrapper(ByteSpan file) {
  return find_front_frame(file.size(), [&](std::uint64_t offset, MutableByteSpan bytes) {
    const ByteSpan from = file.subspan(offset, bytes.size());
    std::copy(from.begin(), from.end(), bytes.begin());
  });
}

std::optional<SeekTable> SeekTable::read(const FramedFile& file, const ReadLimits& limits) {
  constexpr std::uint64_t kLeast = sizeof(SkippableHeader) + sizeof(SeekFooter);
  if (file.size < kLeast) return std::nullopt;
  const std::uint64_t footer_at = file.size - sizeof(SeekFooter);
  const auto footer = read_struct<SeekFooter>(file, footer_at);
  if (std::memcmp(footer.magic, seek_magic(file.codec), sizeof footer.magic) != 0)
    return std::nullopt;
  const std::uint64_t count = footer.frame_count;
  const bool checksums = (footer.descriptor & format::kSeekChecksums) != 0;
  const std::uint64_t stride = sizeof(SeekEntry) + (checksums ? kChecksumLength : 0);
  const std::uint64_t length = count * stride;  // of 32 bits by 12
  const bool fits = count != 0 && count <= format::kMaxSeekFrames &&
                    length <= footer_at - sizeof(SkippableHeader);
  const std::uint64_t entries_at = fits ? footer_at - length : sizeof(SkippableHeader);
  const std::uint64_t table_at = entries_at - sizeof(SkippableHeader);
  const auto header = read_struct<SkippableHeader>(file, table_at);
  if (!fits || std::memcmp(header.magic, format::kSeekTableMagic, sizeof header.magic) != 0) {
    // No error of a file without a table, whose last frame ends with those four bytes by chance.
    if (!ends_with_table(file)) return std::nullopt;
    fail_table("frame_count", footer_at, fmt::format("{} entries of {} bytes", count, stride),
               fmt::format("1 to {}, as many as the skippable frame has",
                           std::uint64_t{format::kMaxSeekFrames}));
  }
  if ((footer.descriptor & kReserved) != 0) {
    fail_table("descriptor", footer_at + offsetof(SeekFooter, descriptor),
               fmt::format("{:#04x}", footer.descriptor), "bits 2 to 6 zero");
  }
  if (header.length != length + sizeof footer) {
    fail_table("length", table_at + offsetof(SkippableHeader, length),
               std::to_string(header.length), std::to_string(length + sizeof footer));
  }

  // The table as it is, and what becomes of it: starts and checksums.
  const std::uint64_t memory = length + (count + 1) * sizeof(Start) + count * kChecksumLength;
  io::MemoryBudget(limits, file.size).take("wrapper", memory);
  std::vector<std::byte> bytes(length);
  io::pread_all(file.fd, entries_at, bytes, file.path);
  SeekTable table;
  table.starts_.reserve(count + 1);
  table.starts_.push_back({0, 0});
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto& entry = format::overlay<SeekEntry>(bytes, i * stride, "wrapper");
    if (checksums)
      table.checksums_.push_back(
          format::overlay<format::le32>(bytes, i * stride + sizeof entry, "wrapper"));
    const std::uint64_t at = entries_at + i * stride;
    const Start from = table.starts_.back();
    const std::uint64_t stored = entry.stored_length;
    const std::uint64_t content = entry.content_length;
    if (stored == 0 || stored > table_at - from.stored) {
      fail_table("stored_length", at, std::to_string(stored),
                 fmt::format("1 to {}", table_at - from.stored));
    }
    if (const std::uint64_t most = codec::most_content(kind_of(file.codec), stored);
        content > most) {
      fail_table("content_length", at + offsetof(SeekEntry, content_length),
                 std::to_string(content),
                 fmt::format("{}, the most of {} stored bytes", most, stored));
    }
    // 2^27 times 2^32 is far from wrapping.
    table.starts_.push_back({from.stored + stored, from.content + content});
    table.longest_ = std::max(table.longest_, stored + content);
  }
  if (const std::uint64_t end = table.starts_.back().stored; end != table_at) {
    fail_table("stored_length", entries_at, fmt::format("{} bytes of all frames", end),
               fmt::format("{}, where the seek table begins", table_at));
  }
  return table;
}

std::size_t SeekTable::frame_at(std::uint64_t content_offset) const noexcept {
  // Frames without content begin where the next frame does. The last one that begins there has the
  // byte.
  const auto behind = std::upper_bound(
      starts_.begin(), starts_.end(), content_offset,
      [](std::uint64_t offset, const Start& start) { return offset < start.content; });
  return static_cast<std::size_t>(std::distance(starts_.begin(), behind)) - 1;
}

std::vector<std::byte> seek_table_bytes(Codec codec, std::span<const SeekEntry> entries) {
  SkippableHeader header;
  std::memcpy(header.magic, format::kSeekTableMagic, sizeof header.magic);
  header.length = static_cast<std::uint32_t>(entries.size_bytes() + sizeof(SeekFooter));
  SeekFooter footer;
  footer.frame_count = static_cast<std::uint32_t>(entries.size());
  footer.descriptor = 0;
  std::memcpy(footer.magic, seek_magic(codec), sizeof footer.magic);
  std::vector<std::byte> out(sizeof header + entries.size_bytes() + sizeof footer);
  std::memcpy(out.data(), &header, sizeof header);
  std::copy_n(std::as_bytes(entries).begin(), entries.size_bytes(), out.begin() + sizeof header);
  std::memcpy(out.data() + sizeof header + entries.size_bytes(), &footer, sizeof footer);
  return out;
}

void decode_frame(const FramedFile& file, const SeekTable::Frame& frame,
                  std::vector<std::byte>& stored, MutableByteSpan content) {
  stored.resize(frame.stored_length);
  try {
    io::pread_all(file.fd, frame.stored_offset, stored, file.path);
    codec::decode_frame(file.codec, stored, content);
  } catch (const FormatError& error) {
    throw FormatError(error.code(), error.message(),
                      {.path = file.path.string(),
                       .section = "wrapper",
                       .offset = frame.stored_offset,
                       .value = error.context().value,
                       .bound = error.context().bound});
  }
}

}  // namespace thalia::container
