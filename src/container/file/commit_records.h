// The copies of headers that every save and append leaves in a file. docs/format/writing.md,
// "Recovery".
#pragma once

#include <cstdint>
#include <optional>

#include "format/header.h"
#include "io/file/file_bytes.h"
#include "thalia/error.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::container {

struct CommitRecord {
  std::uint64_t offset;
  format::Header header;
  std::uint64_t damaged_blocks = 0;
};

struct RecordSearch {
  std::uint64_t records = 0;  ///< that hold as a header
  std::optional<CommitRecord> best;
};

/// Whether `error`, with which check_header() refused the first bytes of `file`, says that they are
/// damaged: not that a limit was passed, or that the header is whole and another version's.
bool may_be_recovered(const Error& error, ByteSpan file);

/// Looks at every multiple of 64, from the end. Among the records whose closing checksum holds, the
/// best is the one with the highest generation that has no damaged block or, if there is none,
/// the one with the highest generation. Hashes the state of no more than 64 records, those of the
/// highest generations.
///
/// @throws CancelledError.
RecordSearch find_commit_record(const io::FileBytes& file, const ReadLimits& limits,
                                unsigned threads, const std::stop_token& cancel);

}  // namespace thalia::container
