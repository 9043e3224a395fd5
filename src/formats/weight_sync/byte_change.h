// How slime writes what changed of one tensor: bytes, whatever the tensor's type.
// docs/format/slime.md, "A delta".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "io/memory/allocation_limit.h"
#include "thalia/types.h"

namespace thalia::formats::weight_sync {

enum class ByteEncoding { xor_bytes, overwrite };
enum class ByteChecksum { xxh3_128, blake3, adler32 };

/// Hands on the frame piece by piece. Both states have equally many bytes. @return bytes that
/// differ. @throws UnsupportedError where positions do not suffice; what `sink` throws.
std::uint64_t encode_bytes(ByteEncoding encoding, ByteSpan before, ByteSpan after,
                           const std::function<void(ByteSpan piece)>& sink);
/// What a frame has of a tensor of so many bytes, at most.
std::uint64_t most_frame_bytes(ByteEncoding encoding, std::uint64_t size) noexcept;
/// Makes the new state in place of the old one. @throws CompressionError, FormatError; before
/// memory is taken, where the frame says that it holds more than a change of `state` can.
void apply_bytes(ByteEncoding encoding, ByteSpan frame, MutableByteSpan state,
                 io::MemoryBudget& budget);

/// In lower-case hexadecimal digits, as many for each tensor.
std::string checksum_text(ByteChecksum kind, ByteSpan bytes);

}  // namespace thalia::formats::weight_sync
