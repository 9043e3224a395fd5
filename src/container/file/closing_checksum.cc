// Checksum types 0 to 2 are one sequence over the whole file and take a pass from the front. A
// block tree is checked from header and leaves alone, whatever the size of the file. The header is
// passed apart from the other bytes because callers hold a copy of it: an append may be overwriting
// the one in the file.
#include "container/file/closing_checksum.h"

#include <cstring>

#include "format/constants.h"
#include "format/overlay.h"
#include "integrity/block_tree.h"
#include "integrity/crc32.h"
#include "integrity/sha256.h"
#include "thalia/error.h"

namespace thalia::container {

Digest256 whole_file_checksum(const format::Header& header, const EachPiece& rest) {
  Digest256 out{};
  const ByteSpan start = format::struct_bytes(header);
  if (header.checksum_type == ChecksumType::sha256) {
    integrity::Sha256 hasher;
    hasher.update(start);
    rest([&](ByteSpan piece) { hasher.update(piece); });
    return hasher.finish();
  }
  if (header.checksum_type == ChecksumType::crc32) {
    std::uint32_t crc = integrity::crc32(start);
    rest([&](ByteSpan piece) { crc = integrity::crc32(piece, crc); });
    const format::le32 stored = crc;
    std::memcpy(out.bytes, &stored, sizeof stored);
  }
  return out;
}

Digest256 closing_checksum(const format::Header& header, ByteSpan leaves, const EachPiece& rest) {
  if (header.checksum_type == ChecksumType::block_tree)
    return integrity::closing_checksum(header, leaves);
  return whole_file_checksum(header, rest);
}

void check_whole_file(const format::Header& header, const Digest256& stored,
                      const EachPiece& rest) {
  if (whole_file_checksum(header, rest) == stored) return;
  throw IntegrityError(
      ErrorCode::checksum_mismatch, "the file is not the one that was written",
      {.section = "checksum", .offset = header.file_length - format::kChecksumLength});
}

}  // namespace thalia::container
