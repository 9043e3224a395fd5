// Chunks are encoded from the caller's memory if they lie in one piece; only a chunk that
// crosses from one piece into another is copied first. The CRC-32 of a chunk is of its stored
// bytes, so damage shows before a decoder runs.
#include "container/write/chunk_encoder.h"

#include <algorithm>

#include "codec/chunk/codec.h"
#include "container/plan/piece_range.h"
#include "integrity/crc32.h"

namespace thalia::container {

ByteSpan joined_range(std::span<const ByteSpan> pieces, std::uint64_t begin, std::uint64_t end,
                      std::vector<std::byte>& joined) {
  ByteSpan out;
  joined.clear();
  for_each_part(pieces, begin, end, [&](ByteSpan part) {
    if (part.size() == end - begin) {
      out = part;
    } else {
      joined.insert(joined.end(), part.begin(), part.end());
      out = joined;
    }
  });
  return out;
}

format::ChunkEntry encode_entry(Codec codec, int level, codec::ElementLayout layout, ByteSpan raw,
                                std::vector<std::byte>& stored) {
  const codec::ChunkForm form = codec::encode_chunk(codec, level, layout, raw, stored);
  format::ChunkEntry entry{};
  entry.codec = form.codec;
  entry.filter = form.filter;
  entry.raw_length = static_cast<std::uint32_t>(raw.size());
  entry.stored_length = static_cast<std::uint32_t>(stored.size());
  entry.crc32 = integrity::crc32(stored);
  return entry;
}

bool all_stored(std::span<const format::ChunkEntry> chunks) {
  return std::all_of(chunks.begin(), chunks.end(),
                     [](const format::ChunkEntry& chunk) { return chunk.codec == Codec::none; });
}

}  // namespace thalia::container
