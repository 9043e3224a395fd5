#include "container/chunk_stream.h"

#include <algorithm>

#include "base/fail.h"
#include "base/parallel.h"
#include "codec/chunk_codec.h"
#include "integrity/crc32.h"
#include "io/posix_file.h"

namespace thalia::container {

std::size_t ChunkStream::batch_bytes() const {
  return std::size_t{target_.chunk_bytes} * resolve_threads(target_.threads) * 2;
}

void ChunkStream::append(ByteSpan bytes) {
  while (!bytes.empty()) {
    // Whole batches are taken from the caller's memory; only the ends of pieces are collected.
    if (pending_.empty() && bytes.size() >= batch_bytes()) {
      store(bytes.first(batch_bytes()));
      bytes = bytes.subspan(batch_bytes());
      continue;
    }
    const std::size_t taken = std::min(bytes.size(), batch_bytes() - pending_.size());
    pending_.insert(pending_.end(), bytes.begin(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(taken));
    bytes = bytes.subspan(taken);
    if (pending_.size() == batch_bytes()) {
      store(pending_);
      pending_.clear();
    }
  }
}

void ChunkStream::store(ByteSpan raw) {
  stop_if_cancelled(target_.cancel);
  const std::size_t count = (raw.size() + target_.chunk_bytes - 1) / target_.chunk_bytes;
  std::vector<std::vector<std::byte>> stored(count);
  const std::size_t first = chunks_.size();
  chunks_.resize(first + count);
  parallel_for(count, target_.threads, [&](std::size_t i) {
    const std::size_t begin = i * target_.chunk_bytes;
    const ByteSpan part =
        raw.subspan(begin, std::min<std::size_t>(target_.chunk_bytes, raw.size() - begin));
    format::ChunkEntry entry{};
    entry.codec = static_cast<std::uint8_t>(
        codec::encode_chunk(target_.codec, target_.level, part, stored[i]));
    entry.filter = static_cast<std::uint8_t>(format::Filter::none);
    entry.raw_length = static_cast<std::uint32_t>(part.size());
    entry.stored_length = static_cast<std::uint32_t>(stored[i].size());
    entry.crc32 = integrity::crc32(stored[i]);
    chunks_[first + i] = entry;
  });
  const std::vector<ByteSpan> pieces(stored.begin(), stored.end());
  io::pwritev_all(target_.fd, offset_ + stored_, pieces, target_.path);
  for (std::size_t i = 0; i < count; ++i) {
    chunks_[first + i].offset = offset_ + stored_;
    stored_ += stored[i].size();
  }
}

std::uint64_t ChunkStream::finish() {
  if (!pending_.empty()) store(pending_);
  pending_.clear();
  return stored_;
}

std::vector<format::ChunkEntry> ChunkStream::take_chunks() {
  const bool raw = std::all_of(chunks_.begin(), chunks_.end(), [](const format::ChunkEntry& chunk) {
    return chunk.codec == static_cast<std::uint8_t>(format::Codec::store);
  });
  if (raw) chunks_.clear();
  return std::move(chunks_);
}

}  // namespace thalia::container
