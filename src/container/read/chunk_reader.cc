// Every chunk but the last has the raw length of the first, so the number of a chunk follows from
// an offset, and its entry is checked against the one before it alone: one chunk of a million
// is read in constant time. check_entries() walks all of them, for a verifier, and so shows that
// they leave no gaps.
//
// The CRC-32 of the stored bytes is checked before a decoder sees them, so that accidental damage
// is reported as damage and not as whatever the decoder stumbles over. docs/format/format.md,
// "Chunks".
#include "container/read/chunk_reader.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "base/parallel.h"
#include "codec/chunk/codec.h"
#include "format/tensor.h"
#include "format/validate_directory.h"
#include "integrity/crc32.h"
#include "io/memory/allocation_limit.h"

namespace thalia::container {
namespace {

// So many, and threads that end at different times still share the work well.
constexpr std::uint32_t kPairsPerThread = 2;

void check_crc(const format::ChunkEntry& chunk, ByteSpan stored) {
  if (const std::uint32_t crc = integrity::crc32(stored); crc != chunk.crc32) {
    throw IntegrityError(ErrorCode::checksum_mismatch, "the chunk is not the one that was written",
                         {.section = "payload",
                          .field = "crc32",
                          .offset = std::uint64_t{chunk.offset},
                          .value = fmt::format("{:#010x}", crc),
                          .bound = fmt::format("{:#010x}", std::uint32_t{chunk.crc32})});
  }
}

}  // namespace

ChunkReader::ChunkReader(const detail::OpenFile& file, const format::TensorEntry& entry)
    : file_(file), entry_(entry) {
  chunk_bytes_ = file.chunk_entry(entry.first_chunk).raw_length;
  // All chunks but the last have this many bytes, and the last has at least one.
  const std::uint64_t before_last = entry.chunk_count - 1ull;
  std::uint64_t begin_of_last;
  if (chunk_bytes_ == 0 || __builtin_mul_overflow(before_last, chunk_bytes_, &begin_of_last) ||
      begin_of_last >= entry.logical_length ||
      entry.logical_length - begin_of_last > chunk_bytes_) {
    fail_field(
        ErrorCode::bad_value, "directory", "raw_length", file.chunk_entry_offset(entry.first_chunk),
        fmt::format("{} for each of {} chunks", chunk_bytes_, std::uint32_t{entry.chunk_count}),
        fmt::format("logical_length {}", std::uint64_t{entry.logical_length}));
  }
}

std::uint64_t ChunkReader::raw_length(std::uint32_t i) const {
  return std::min(chunk_bytes_, entry_.logical_length - i * chunk_bytes_);
}

const format::ChunkEntry& ChunkReader::checked_entry(std::uint32_t i) const {
  const format::ChunkEntry& chunk = file_.chunk_entry(entry_.first_chunk + i);
  std::uint64_t expected = entry_.stored_offset;
  if (i > 0) {
    const format::ChunkEntry& before = file_.chunk_entry(entry_.first_chunk + i - 1);
    expected =
        before.offset + before.stored_length;  // not validated; a sum that wraps matches no offset
  }
  format::validate_chunk_entry(chunk, i, entry_, expected, entry_.logical_length - i * chunk_bytes_,
                               static_cast<std::uint32_t>(chunk_bytes_),
                               file_.chunk_entry_offset(entry_.first_chunk + i));
  const std::uint64_t end = entry_.stored_offset + entry_.stored_length;
  if (i + 1 == entry_.chunk_count && chunk.offset + chunk.stored_length != end) {
    fail_field(ErrorCode::bad_value, "directory", "stored_length",
               file_.chunk_entry_offset(entry_.first_chunk + i),
               fmt::format("a last chunk that ends at {}", chunk.offset + chunk.stored_length),
               std::to_string(end));
  }
  return chunk;
}

void ChunkReader::check_entries() const {
  for (std::uint32_t i = 0; i < entry_.chunk_count; ++i) checked_entry(i);
}

// If the file is mapped, the stored bytes are decoded in place, and nothing is allocated.
ByteSpan ChunkReader::stored_bytes(const format::ChunkEntry& chunk,
                                   std::vector<std::byte>& buffer) const {
  if (file_.options().input.access == Access::copied)
    io::MemoryBudget(file_.options().input.limits, chunk.stored_length)
        .take("payload", chunk.stored_length);
  file_.mapping().read_ahead(chunk.offset, chunk.stored_length);
  return file_.chunk_bytes(chunk, buffer);
}

void ChunkReader::decode(std::uint32_t i, MutableByteSpan out) const {
  const format::ChunkEntry& chunk = checked_entry(i);
  std::vector<std::byte> buffer;
  decode_stored(chunk, stored_bytes(chunk, buffer), out);
}

void ChunkReader::decode_two(std::uint32_t i, MutableByteSpan out) const {
  std::vector<std::byte> buffers[2];
  codec::StoredChunk chunks[2];
  for (std::uint32_t k = 0; k < 2; ++k) {
    const format::ChunkEntry& chunk = checked_entry(i + k);
    chunks[k] = {{chunk.codec, chunk.filter},
                 stored_bytes(chunk, buffers[k]),
                 out.subspan(k * chunk_bytes_, raw_length(i + k))};
    check_crc(chunk, chunks[k].stored);
  }
  codec::decode_two_chunks(chunks[0], chunks[1]);
}

void decode_stored(const format::ChunkEntry& chunk, ByteSpan stored, MutableByteSpan out) {
  check_crc(chunk, stored);
  codec::decode_chunk(chunk.codec, chunk.filter, stored, out);
}

void ChunkReader::decode_all(MutableByteSpan out) const {
  // Two at a time are faster, as long as every thread has enough to do.
  const std::uint32_t count = entry_.chunk_count;
  const unsigned threads = resolve_threads(file_.options().work.threads, count);
  const std::uint32_t step = count >= kPairsPerThread * 2ull * threads ? 2 : 1;
  parallel_for((count + step - 1) / step, threads, [&](std::size_t i) {
    const auto number = static_cast<std::uint32_t>(i * step);
    const MutableByteSpan from = out.subspan(number * chunk_bytes_);
    if (step == 2 && number + 1 < count) {
      decode_two(number, from);
    } else {
      decode(number, from.first(raw_length(number)));
    }
  });
}

}  // namespace thalia::container
