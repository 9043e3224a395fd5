// Repair of a file whose header a crash or a defect damaged, and what can be saved of one that is
// damaged otherwise, or cut: every tensor that is still the one that was written, in a new file.
//
//   const thalia::SalvageResult result = thalia::salvage("torn.thalia", "saved.thalia");
//   for (const thalia::LostTensor& tensor : result.lost) report(tensor.name);
//
// docs/format/writing.md, "Recovery".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/options.h"
#include "thalia/result.h"
#include "thalia/types.h"

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
  /// Damaged blocks of the state that was restored; more than 0 only where no state is whole.
  /// verify() says what they hold.
  std::uint64_t damaged_blocks = 0;
  std::uint64_t generation = 0;    ///< of the file now
  std::uint64_t file_bytes = 0;    ///< of the file now
  std::uint64_t debris_bytes = 0;  ///< after them, ignored by readers; they stay
  Digest256 closing_checksum;
};

/// Locks the file. Where its header does not hold (magic, CRC-32, fields, or a file_length that the
/// file does not have), searches all of it for commit records, and takes the one with the highest
/// generation whose closing checksum holds; a state without a damaged block goes before all others.
/// Writes the record over the header, and syncs. Reads the file up to twice. If the file is mapped,
/// only a few records are in memory; a copied one is in memory as a whole.
///
/// Debris of an append that was not committed never takes the place of a header that holds.
///
/// @throws IntegrityError, saying what was tried, where no commit record will do; nothing is
/// changed then. UnsupportedError where the header holds and another version wrote it. IoError,
/// with EWOULDBLOCK where the file is locked.
RecoverResult recover(const std::filesystem::path& path, const RecoverOptions& options = {});

/// Where the names and places of tensors were taken from.
enum class SalvageTables {
  header,         ///< the file's own header and tables
  commit_record,  ///< the copy of a header that a save or an append left: maybe an older state
  side_file,      ///< NAME.meta next to the file (thalia/side_file.h)
};

/// "header", "commit_record", "side_file". Static storage.
std::string_view salvage_tables_name(SalvageTables tables) noexcept;

struct SalvageOptions {
  SaveOptions save{};  ///< work is for all of it; tensors stored compressed stay as they are
  InputOptions input{};
  /// The side file; empty: the file's path with ".meta" after it, if there is one.
  std::filesystem::path side_file{};
};

struct LostTensor {
  std::string name;         ///< REGION/NAME, SOURCE->TARGET.weights; where names are lost, numbers
  std::uint64_t bytes = 0;  ///< logical ones; 0: not known
  std::string reason;
};

/// `tensors` count matrices of connections.
struct SalvageResult : RewriteResult {
  SalvageTables tables = SalvageTables::header;
  /// What was wrong with the file's own header and tables; empty where they hold.
  std::string fault;
  /// Names and tables hold by the file's checksums. Else they are well formed, and no more is known
  /// of names; a tensor's digest shows in any case whether its bytes are right.
  bool tables_verified = false;
  std::uint64_t generation = 0;         ///< of the state that was saved
  std::uint32_t regions = 0;            ///< of the output
  std::vector<LostTensor> lost;         ///< in the order of the tables
  std::vector<std::string> lost_texts;  ///< "metadata", "config of region 'x': why"

  bool whole() const noexcept { return lost.empty() && lost_texts.empty(); }
};

/// Writes a new file with each tensor whose bytes lie within the input, or in what its frames hold
/// if it is compressed, and have the digests that the tables say, with regions, connections and
/// texts as far as they are there. What is lost goes from the trees of states too, as
/// remove_from_file() does it. The file's own header and tables come first, then the side file,
/// then commit records. With a side file, or for a file that was cut, a copy without a name takes
/// the input's space on the output's file system meanwhile. Reads each tensor a few times; tables,
/// texts and one compressed tensor are in memory, and so is all of a copied input.
/// @throws IntegrityError where nothing can be got, saying what was tried, also where a tensor was
/// named and none is left; UnsupportedError for a delta or another version's; UsageError (exists);
/// IoError; CancelledError. The output is as it was then.
SalvageResult salvage(const std::filesystem::path& input, const std::filesystem::path& output,
                      const SalvageOptions& options = {});

}  // namespace thalia
