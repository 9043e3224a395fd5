// What comes before a delta's container: its header, and where its base is.
// docs/format/deltas.md, "Delta files".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/delta.h"
#include "format/header.h"
#include "io/file/file_bytes.h"
#include "thalia/types.h"

namespace thalia::container {

/// Borrowed from the bytes it was read from.
struct DeltaPrefix {
  const format::DeltaHeader& header;
  const format::DeltaReference& reference;
  std::string_view path;  ///< of the base, as stored
};

/// True of what begins as a delta does, whatever its version.
bool is_delta(ByteSpan file) noexcept;

/// The prefix at the front of a delta, checked to its last byte. @throws FormatError;
/// IntegrityError; UnsupportedError for the original program's deltas and for newer versions.
DeltaPrefix delta_prefix(const io::FileBytes& file);
/// The same of bytes that were checked before.
DeltaPrefix checked_delta_prefix(ByteSpan prefix) noexcept;

/// What a delta's header repeats of its container's. @throws FormatError (inconsistent).
void check_delta_header(ByteSpan prefix, const format::Header& header);

/// A prefix for a base; crc32 and what follows from the path are filled in.
std::vector<std::byte> build_delta_prefix(const format::DeltaHeader& header,
                                          const format::DeltaReference& reference,
                                          std::string_view path);

/// The 1.0 file in an open file: itself, or what a delta holds. @throws as delta_prefix().
std::shared_ptr<const io::FileBytes> container_of(std::shared_ptr<const io::FileBytes> file);

}  // namespace thalia::container
