#include "container/compressed_tensor.h"

#include <algorithm>
#include <cstdint>

#include "base/fail.h"
#include "base/parallel.h"
#include "codec/chunk_codec.h"
#include "container/piece_range.h"
#include "integrity/crc32.h"

namespace thalia::container {

std::vector<std::vector<std::byte>> compress_tensor(DraftTensor& tensor,
                                                    const AppendOptions& options) {
  const std::uint64_t chunk_bytes = options.chunk_bytes;
  const std::size_t count = (tensor.logical_length + chunk_bytes - 1) / chunk_bytes;
  std::vector<std::vector<std::byte>> stored(count);
  std::vector<format::ChunkEntry> chunks(count);
  parallel_for(count, options.threads, [&](std::size_t i) {
    stop_if_cancelled(options.cancel);
    const std::uint64_t begin = i * chunk_bytes;
    const std::uint64_t end = std::min(begin + chunk_bytes, tensor.logical_length);
    std::vector<std::byte> raw;
    raw.reserve(end - begin);
    for_each_part(tensor.pieces, begin, end,
                  [&](ByteSpan part) { raw.insert(raw.end(), part.begin(), part.end()); });
    format::ChunkEntry& chunk = chunks[i];
    chunk.codec = static_cast<std::uint8_t>(
        codec::encode_chunk(options.compression, options.compression_level, raw, stored[i]));
    chunk.filter = static_cast<std::uint8_t>(format::Filter::none);
    chunk.raw_length = static_cast<std::uint32_t>(raw.size());
    chunk.stored_length = static_cast<std::uint32_t>(stored[i].size());
    chunk.crc32 = integrity::crc32(stored[i]);
  });
  const bool shrank = std::any_of(chunks.begin(), chunks.end(), [](const auto& chunk) {
    return chunk.codec != static_cast<std::uint8_t>(format::Codec::store);
  });
  if (!shrank) return {};
  tensor.in_chunks = true;
  tensor.pieces.assign(stored.begin(), stored.end());
  tensor.stored_length = 0;
  for (format::ChunkEntry& chunk : chunks) {
    chunk.offset = tensor.stored_length;
    tensor.stored_length += chunk.stored_length;
  }
  tensor.chunks = std::move(chunks);
  return stored;
}

}  // namespace thalia::container
