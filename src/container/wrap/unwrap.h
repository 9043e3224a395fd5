// One compressed frame around a whole file in memory, as programs write it that know nothing of
// seek tables: the original program's version 0.1 files above all. docs/format/format.md,
// "Wrappers".
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::container {

struct Unwrapped {
  Codec codec;                   ///< zstd or lz4
  std::vector<std::byte> bytes;  ///< what the frame holds
  ByteSpan frame;                ///< the frame itself, at the front of what was given
  ByteSpan trailing;             ///< what follows it, whatever that is; often nothing
};

/// The codec of the frames that a file's name asks for: .zst or .lz4; nullopt for another ending.
std::optional<Codec> wrapper_codec(const std::filesystem::path& name);

/// What the frame at the front of `file` holds, up to `most` bytes of it, as far as the frame gives
/// them: enough to tell whether the rest is worth decoding. @throws FormatError if it is broken.
std::vector<std::byte> start_of_front_frame(ByteSpan file, Codec codec, std::size_t most);

/// Decodes the one frame at the front of `file`, with or without a content size.
/// @throws FormatError: (bad_magic) if there is none, (bad_value) if it is broken,
/// (truncated) if it does not end, (limit_exceeded) if it holds more than
/// max_allocation_bytes, of which nothing is allocated where the frame says so itself.
Unwrapped unwrap_front_frame(ByteSpan file, const ReadLimits& limits);

}  // namespace thalia::container
