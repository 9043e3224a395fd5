// The bytes between two arrays of a payload, which are zero.
#pragma once

#include "format/extent.h"
#include "thalia/error.h"
#include "thalia/types.h"

namespace thalia::container {

/// `before` and `values` follow each other in `payload`, which lies at `stored_offset` in the file.
/// @throws FormatError.
inline void require_zero_padding(ByteSpan payload, std::uint64_t stored_offset,
                                 format::Extent before, format::Extent values) {
  for (std::uint64_t at = before.offset + before.length; at < values.offset; ++at) {
    if (payload[at] == std::byte{0}) continue;
    throw FormatError(ErrorCode::bad_value, "the padding in front of the values is not zero",
                      {.section = "payload", .field = "values", .offset = stored_offset + at});
  }
}

}  // namespace thalia::container
