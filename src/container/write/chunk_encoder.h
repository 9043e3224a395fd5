// One chunk of a payload that is borrowed in pieces. docs/format/format.md, "Chunks".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/cpu/element_layout.h"
#include "format/chunk.h"
#include "thalia/types.h"

namespace thalia::container {

/// The bytes [begin, end) of the pieces joined: in place if they lie in one piece, else copied
/// to `joined`.
ByteSpan joined_range(std::span<const ByteSpan> pieces, std::uint64_t begin, std::uint64_t end,
                      std::vector<std::byte>& joined);

/// Encodes `raw` into `stored`, replacing its contents. @return the chunk's entry, but for its
/// offset. @throws UsageError for a level that does not exist.
format::ChunkEntry encode_entry(Codec codec, int level, codec::ElementLayout layout, ByteSpan raw,
                                std::vector<std::byte>& stored);

/// True if no chunk shrank, so that the tensor lies in the file as it is, without chunks.
bool all_stored(std::span<const format::ChunkEntry> chunks);

}  // namespace thalia::container
