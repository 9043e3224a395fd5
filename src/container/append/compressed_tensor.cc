// All chunks of a tensor are encoded at once and kept in memory until they are written. A save has
// a pipeline for this; an append does without, because what it adds is small.
#include "container/append/compressed_tensor.h"

#include <algorithm>
#include <cstdint>

#include "base/fail.h"
#include "base/parallel.h"
#include "container/draft/chunk_layout.h"
#include "container/write/chunk_encoder.h"
#include "format/chunk.h"

namespace thalia::container {

std::vector<std::vector<std::byte>> compress_tensor(DraftTensor& tensor,
                                                    const AppendOptions& options) {
  const std::uint64_t chunk_bytes = options.compression.chunk_bytes;
  const std::size_t count = (tensor.logical_length + chunk_bytes - 1) / chunk_bytes;
  std::vector<std::vector<std::byte>> stored(count);
  std::vector<format::ChunkEntry> chunks(count);
  parallel_for(count, options.work.threads, [&](std::size_t i) {
    stop_if_cancelled(options.work.cancel);
    const std::uint64_t begin = i * chunk_bytes;
    const std::uint64_t end = std::min(begin + chunk_bytes, tensor.logical_length);
    std::vector<std::byte> joined;
    chunks[i] = encode_entry(*options.compression.codec, options.compression.level,
                             chunk_layout(tensor, begin, end),
                             joined_range(tensor.pieces, begin, end, joined), stored[i]);
  });
  if (all_stored(chunks)) return {};
  // From here on the pieces are stored bytes; logical ones are not needed any more, since the
  // tensor is digested.
  tensor.in_chunks = true;
  tensor.pieces = std::vector<ByteSpan>(stored.begin(), stored.end());
  tensor.stored_length = 0;
  for (format::ChunkEntry& chunk : chunks) {
    chunk.offset = tensor.stored_length;
    tensor.stored_length += chunk.stored_length;
  }
  tensor.chunks = std::move(chunks);
  return stored;
}

}  // namespace thalia::container
