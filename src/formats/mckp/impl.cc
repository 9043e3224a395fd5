// Checks the frame of a file: prelude, header, the places of blocks, footer. After parse_mckp()
// every block lies in the file, blocks neither overlap nor leave gaps, and flags and sums agree
// with them; payloads have not been looked at. All offsets are checked by subtracting from what is
// left, which cannot wrap.
#include "formats/mckp/impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/utf8.h"
#include "codec/frame/frame.h"
#include "codec/frame/zstd_frame.h"
#include "format/foreign_file.h"
#include "formats/mckp/format.h"
#include "integrity/xxh64.h"
#include "io/memory/allocation_limit.h"

namespace thalia::formats {
namespace {

template <typename T>
T load(ByteSpan file, std::uint64_t offset) {
  T structure;
  std::memcpy(&structure, file.data() + offset, sizeof(structure));
  return structure;
}

std::uint64_t content_end(ByteSpan file) {
  return file.size() - sizeof(MckpFooter);
}

MckpPrelude checked_prelude(ByteSpan file) {
  constexpr std::uint64_t kLeast = sizeof(MckpPrelude) + sizeof(MckpFooter);
  if (file.size() < kLeast) {
    throw FormatError(ErrorCode::truncated,
                      file.empty() ? format::kEmptyFile : "no room for prelude and footer",
                      {.section = "prelude",
                       .offset = 0,
                       .value = fmt::format("{} bytes", file.size()),
                       .bound = fmt::format("at least {}", kLeast)});
  }
  const auto prelude = load<MckpPrelude>(file, 0);
  const std::string_view magic(prelude.magic, sizeof prelude.magic);
  if (magic != kMckpMagic) {
    fail_field(ErrorCode::bad_magic, "prelude", "magic", 0, printable(magic),
               std::string(kMckpMagic));
  }
  if (prelude.version != kMckpVersion) {
    throw UnsupportedError(ErrorCode::unsupported_version, {},
                           {.section = "prelude",
                            .field = "version",
                            .offset = 4,
                            .value = std::to_string(prelude.version),
                            .bound = std::to_string(kMckpVersion)});
  }
  if ((prelude.flags & ~kMckpKnownFlags) != 0) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "unknown flags",
                           {.section = "prelude",
                            .field = "flags",
                            .offset = 8,
                            .value = fmt::format("{:#x}", std::uint32_t{prelude.flags}),
                            .bound = fmt::format("{:#x}", kMckpKnownFlags)});
  }
  const std::uint64_t room = file.size() - kLeast;
  if (prelude.header_length > room) {
    fail_field(ErrorCode::truncated, "prelude", "header_length", 12,
               std::to_string(prelude.header_length),
               fmt::format("at most {}, what is left of the file", room));
  }
  return prelude;
}

// Memory that a byte of text takes in all: the text while it grows, the parser's copy and index,
// the values.
constexpr std::uint64_t kMemoryPerByteOfText = 16;
// 64 KiB are read whatever the limit, so that a small file is refused for what is in it.
constexpr std::uint64_t kAlwaysRead = 1 << 16;

// The header is one zstd frame that need not tell its size. So the text grows in steps, each at
// most twice the one before, and stops one byte after the limit: a bomb is noticed when it is
// passed.
std::string decompressed(ByteSpan stored, const ReadLimits& limits) {
  const std::uint64_t limit = std::min(kMckpMaxHeader, limits.max_json_bytes);
  const std::uint64_t most =
      std::max(kAlwaysRead, io::allocation_limit(limits, stored.size()) / kMemoryPerByteOfText);
  std::string text;
  if (codec::frame_kind(stored) != codec::FrameKind::zstd) {
    throw CompressionError("zstd", "the header is no zstd frame",
                           {.section = "header", .offset = sizeof(MckpPrelude)});
  }
  const auto decoder = codec::FrameDecoder::create(Codec::zstd);
  codec::FrameDecoder::Step step;
  do {
    const std::size_t before = text.size();
    text.resize(std::min<std::uint64_t>(std::min(limit, most) + 1,
                                        std::max<std::size_t>(4096, 2 * before)));
    step = decoder->decode(stored, std::as_writable_bytes(std::span(text)).subspan(before));
    stored = stored.subspan(step.consumed);
    text.resize(before + step.written);
    // Two limits: the length that a header may have, and the memory that reading it may take.
    if (text.size() > limit) fail_limit("header", "max_json_bytes", text.size(), limit);
    if (text.size() > most)
      fail_limit("header", "max_allocation_bytes", text.size() * kMemoryPerByteOfText,
                 most * kMemoryPerByteOfText);
    // No progress with input used up and room to write: it would go on for ever.
    if (!step.frame_ended && step.consumed == 0 && step.written == 0)
      throw CompressionError("zstd", "the header's frame ends too early", {.section = "header"});
  } while (!step.frame_ended);
  // Bytes that nothing reads could hide a second header.
  if (!stored.empty()) {
    throw CompressionError("zstd", "bytes follow the header's frame",
                           {.section = "header",
                            .field = "header_length",
                            .value = fmt::format("{} bytes", stored.size()),
                            .bound = "0"});
  }
  return text;
}

// What the prelude says of all blocks together.
std::uint32_t flags_of(const std::vector<MckpTensor>& tensors) {
  std::uint32_t flags = 0;
  for (const MckpTensor& tensor : tensors) {
    if (tensor.method.delta) flags |= kMckpFlagDelta;
    if (tensor.method.plane_width != 0) flags |= kMckpFlagGrouped;
    if (tensor.method.quantized) flags |= kMckpFlagQuantized;
    if (tensor.method.sparse) flags |= kMckpFlagSparse;
    if (tensor.method.low_rank) flags |= kMckpFlagLowRank;
    if (tensor.method.steps) flags |= kMckpFlagSteps;
  }
  return flags;
}

// Blocks follow each other from `first` to `end` without gaps, so none can overlap. Their offsets
// count from the first block in the file, and from the file's beginning afterwards.
void place_blocks(std::vector<MckpTensor>& tensors, std::uint64_t first, std::uint64_t end) {
  std::uint64_t offset = first;
  const auto refuse = [](const MckpTensor& tensor, std::string_view field, std::uint64_t value,
                         std::string bound) {
    throw FormatError(ErrorCode::out_of_bounds, {},
                      {.section = "header",
                       .field = std::string(field),
                       .tensor = printable(tensor.name),
                       .value = std::to_string(value),
                       .bound = std::move(bound)});
  };
  for (MckpTensor& tensor : tensors) {
    if (tensor.offset != offset - first) {
      refuse(tensor, "offset", tensor.offset,
             fmt::format("{}, where the one before ends", offset - first));
    }
    tensor.offset = offset;
    const std::uint64_t header = mckp_block_header(tensor.name);
    if (header > end - offset)
      refuse(tensor, "offset", offset, fmt::format("{} bytes before {}", header, end));
    offset += header;
    if (tensor.compressed_size > end - offset)
      refuse(tensor, "compressed_size", tensor.compressed_size, std::to_string(end - offset));
    offset += tensor.compressed_size;
  }
  if (offset != end) {
    throw FormatError(ErrorCode::inconsistent, "bytes between the last block and the footer",
                      {.section = "footer",
                       .offset = offset,
                       .value = fmt::format("{} bytes", end - offset),
                       .bound = "0"});
  }
}

}  // namespace

ParsedMckp parse_mckp(ByteSpan file, const ReadLimits& limits) {
  io::check_file_bytes("prelude", file.size(), limits);
  const MckpPrelude prelude = checked_prelude(file);
  const std::uint64_t first_block = sizeof(MckpPrelude) + prelude.header_length;
  const ByteSpan frame = file.subspan(sizeof(MckpPrelude), prelude.header_length);
  const std::string text = decompressed(frame, limits);
  ParsedMckp parsed;
  parsed.header_is_checked = codec::zstd_has_checksum(frame);
  try {
    ParsedMckpHeader header = parse_mckp_header(text, limits);
    parsed.header = std::move(header.header);
    parsed.tensors = std::move(header.tensors);
  } catch (Error& error) {
    error.add_section("header");
    throw;
  }
  place_blocks(parsed.tensors, first_block, content_end(file));
  const std::uint32_t flags = flags_of(parsed.tensors);
  if (prelude.flags != flags) {
    fail_field(ErrorCode::inconsistent, "prelude", "flags", 8,
               fmt::format("{:#x}", std::uint32_t{prelude.flags}),
               fmt::format("{:#x}, by its blocks", flags));
  }
  const auto footer = load<MckpFooter>(file, content_end(file));
  std::uint64_t total = 0;
  for (const MckpTensor& tensor : parsed.tensors) total += tensor.compressed_size;
  if (footer.total_compressed_size != total) {
    fail_field(ErrorCode::inconsistent, "footer", "total_compressed_size", content_end(file) + 8,
               std::to_string(footer.total_compressed_size),
               fmt::format("{}, the sum of its blocks", total));
  }
  parsed.checksum = footer.checksum;
  return parsed;
}

ByteSpan mckp_payload(ByteSpan file, const MckpTensor& tensor, bool check) {
  const std::string expected = mckp_block_header_bytes(tensor);
  const ByteSpan stored = file.subspan(tensor.offset, expected.size());
  // A block repeats what the header says of it. Comparing whole finds any difference at once.
  if (!std::ranges::equal(stored, as_byte_span(expected))) {
    throw FormatError(
        ErrorCode::inconsistent, "the block's header is not what the index says",
        {.section = "block", .tensor = printable(tensor.name), .offset = tensor.offset});
  }
  const ByteSpan payload = file.subspan(tensor.offset + expected.size(), tensor.compressed_size);
  if (!check) return payload;
  const std::uint64_t sum = integrity::xxh64(payload);
  if (sum != tensor.xxh64) {
    throw IntegrityError(ErrorCode::checksum_mismatch, "the payload's XXH64",
                         {.section = "block",
                          .tensor = printable(tensor.name),
                          .offset = tensor.offset + expected.size(),
                          .value = fmt::format("{:016x}", sum),
                          .bound = fmt::format("{:016x}", tensor.xxh64)});
  }
  return payload;
}

void check_mckp_checksum(ByteSpan file, const ParsedMckp& parsed) {
  const std::uint64_t sum = integrity::xxh64(file.first(content_end(file)));
  if (sum == parsed.checksum) return;
  throw IntegrityError(ErrorCode::checksum_mismatch, "the file's XXH64",
                       {.section = "footer",
                        .field = "checksum",
                        .offset = content_end(file),
                        .value = fmt::format("{:016x}", sum),
                        .bound = fmt::format("{:016x}", parsed.checksum)});
}

}  // namespace thalia::formats
