// Parsing a safetensors file that lies in memory. The rules are those of the format's description,
// checked more strictly than the reference does: it takes files with repeated keys, unknown fields
// of a tensor or white space before the header, and drops what it does not know.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "thalia/formats/safetensors.h"
#include "thalia/types.h"

namespace thalia::formats {

/// Bytes of a header at most, for reading and writing, as in the reference.
inline constexpr std::uint64_t kSafetensorsHeaderLimit = 100'000'000;
/// Bytes of the header's length, which comes before it.
inline constexpr std::uint64_t kSafetensorsPrefix = 8;
inline constexpr std::string_view kSafetensorsMetadataKey = "__metadata__";

struct ParsedSafetensors {
  std::vector<NamedArray> tensors;  ///< by offset, then as in the header; bytes in `file`
  std::optional<SafetensorsMetadata> metadata;  ///< in the order of the header
  std::string_view header{};                    ///< the text in `file`, its padding included
};

/// True of the first bytes of a JSON text, as an index is, and of no file of this format.
bool begins_as_json(ByteSpan start) noexcept;

/// Makes an extent of a file readable that is not in memory as a whole.
using TouchFile = std::function<void(std::uint64_t offset, std::uint64_t length)>;

/// @param touch is asked for the header's extents; without one all of `file` is readable.
/// @throws FormatError, UnsupportedError as SafetensorsFile::open(), without the path; what `touch`
/// throws.
ParsedSafetensors parse_safetensors(ByteSpan file, std::uint64_t max_header_bytes,
                                    const ReadLimits& limits = {}, const TouchFile& touch = {});

}  // namespace thalia::formats
