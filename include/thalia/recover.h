// Repair of a file whose header a crash or a defect damaged. docs/writing.md, "Recovery".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "thalia/bytes.h"
#include "thalia/options.h"

namespace thalia {

struct RecoverOptions {
  InputOptions input{};
  /// Wait while an appender, compact() or another recover() holds the file; else that is an
  /// IoError.
  bool wait = false;
  /// Threads, and the stop, which ends it before anything is changed.
  Work work{};
};

struct RecoverResult {
  /// True where a commit record was written over the header; false where the header holds, and
  /// nothing was changed.
  bool restored = false;
  std::string fault;                ///< what was wrong with the header; empty where it holds
  std::uint64_t record_offset = 0;  ///< of the commit record that was taken
  std::uint64_t records = 0;        ///< that hold as a header, of all generations
  /// Of the state that was restored; more than 0 only where no state is whole. verify() tells what
  /// they hold.
  std::uint64_t damaged_blocks = 0;
  std::uint64_t generation = 0;    ///< of the file now
  std::uint64_t file_bytes = 0;    ///< of the file now
  std::uint64_t debris_bytes = 0;  ///< behind them, ignored by readers; they stay
  Digest256 closing_checksum;
};

/// Locks the file. Where its header does not hold (magic, CRC-32, fields, or a file_length that the
/// file does not have), searches all of it for commit records, and takes the one with the highest
/// generation whose closing checksum holds; a state without a damaged block goes before all others.
/// Writes the record over the header, and syncs. Reads the file up to twice. Of a
/// mapped file it holds only a few records in memory; a copied one is in memory as a whole.
///
/// Debris of an append that was not committed never takes the place of a header that holds.
///
/// @throws IntegrityError, saying what was tried, where no commit record will do; nothing is
/// changed then. UnsupportedError where the header holds and another version wrote it. IoError,
/// with EWOULDBLOCK where the file is locked.
RecoverResult recover(const std::filesystem::path& path, const RecoverOptions& options = {});

}  // namespace thalia
