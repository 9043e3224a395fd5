// How slime writes what changed of one tensor: bytes, whatever the tensor's type.
// docs/format/slime.md, "A delta".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/memory/allocation_limit.h"
#include "thalia/types.h"

namespace thalia::formats::weight_sync {

enum class ByteEncoding { xor_bytes, overwrite };
enum class ByteChecksum { xxh3_128, blake3, adler32 };

/// Replaces `out` by the frame. Both states have equally many bytes. @return bytes that differ; if
/// there are none, `out` is not made. @throws UnsupportedError where positions do not suffice.
std::uint64_t encode_bytes(ByteEncoding encoding, ByteSpan before, ByteSpan after,
                           std::vector<std::byte>& out);
/// Makes the new state in place of the old one. @throws CompressionError, FormatError; before
/// memory is taken, where the frame says that it holds more than a change of `state` can.
void apply_bytes(ByteEncoding encoding, ByteSpan frame, MutableByteSpan state,
                 io::MemoryBudget& budget);

/// In lower-case hexadecimal digits.
std::string checksum_text(ByteChecksum kind, ByteSpan bytes);

}  // namespace thalia::formats::weight_sync
