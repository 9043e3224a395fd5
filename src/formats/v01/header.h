// The header of 0.1 files, checked. docs/format/v01.md, "Version 0.1 files".
#pragma once

#include <string>
#include <vector>

#include "format/extent.h"
#include "format/v01.h"
#include "formats/v01/binary.h"
#include "thalia/formats/v01.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::formats {

/// Bytes of the checksum after the body.
inline constexpr std::size_t kV01TrailerBytes = 32;

using Sentences = std::vector<std::string>;

/// A document's header with the magic, metadata after the header, and no other offset or length.
format::V01FileHeader to_disk(const V01Header& header) noexcept;
V01Header from_disk(const format::V01FileHeader& disk) noexcept;

/// True where the magic is that of a full file, and the major version 0.
bool begins_as_v01(ByteSpan start) noexcept;

/// Checks what can be checked before the checksum is known to hold. @throws FormatError (truncated,
/// bad_magic); UnsupportedError (unsupported_version).
void require_v01_start(ByteSpan file);

/// The header at the front of a body, which does not have the checksum any more. Every offset and
/// length lies in the body. @throws FormatError; as require_v01_start().
format::V01FileHeader read_v01_header(ByteSpan body, const ReadLimits& limits, Sentences& warnings);

/// The region index, whose header was checked. @throws FormatError.
std::vector<V01IndexEntry> read_v01_index(ByteSpan body, const format::V01FileHeader& header,
                                          Sentences& warnings);

/// @throws UnsupportedError (unsupported_feature) where an index cannot have the name.
format::V01RegionEntry make_v01_index_entry(const std::string& name, V01Extent json);

}  // namespace thalia::formats
