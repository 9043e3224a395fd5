// The closing checksum, with and without a block tree. docs/format/format.md, "Checksum types".
#pragma once

#include <functional>

#include "format/header.h"
#include "thalia/types.h"

namespace thalia::container {

/// Calls its argument with consecutive bytes.
using EachPiece = std::function<void(const std::function<void(ByteSpan)>& visit)>;

/// The checksum of types none, sha256 and crc32: over `header` and what `rest` visits, the bytes
/// from the header's end up to header.integrity_offset.
Digest256 whole_file_checksum(const format::Header& header, const EachPiece& rest);

/// The checksum of any type: from the leaves if there is a block tree, else as above.
Digest256 closing_checksum(const format::Header& header, ByteSpan leaves, const EachPiece& rest);

/// @throws IntegrityError unless whole_file_checksum() is `stored`, the file's last 32 bytes.
void check_whole_file(const format::Header& header, const Digest256& stored, const EachPiece& rest);

}  // namespace thalia::container
