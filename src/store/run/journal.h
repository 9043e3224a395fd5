// What a phase's folder remembers of its checkpoints beside what their names say: a line for each
// save, one for each that was removed, one for each that was read, and one where the run went on
// from an earlier one. docs/format/store.md, "Journal".
//
// The folder is the truth: a line counts for a file that is there and has the size that it says. A
// line that is torn, or was never written, costs the metric of one checkpoint and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "thalia/store/retention.h"

namespace thalia::store {

/// What a save says of its checkpoint.
struct JournalLine {
  std::string file;
  std::uint64_t step = 0;
  std::uint64_t bytes = 0;
  std::uint64_t saved_at = 0;
  std::string sha256{};  ///< empty: not known
  std::optional<double> metric{};
  std::string base{};
  unsigned depth = 0;
  std::optional<double> read_factor{};
  /// When the file was last changed, in nanoseconds since 1970; 0: not known. A file that still
  /// says so is the one that was saved.
  std::uint64_t modified_ns = 0;
  /// Written by a save: the last of these is of the latest checkpoint.
  bool is_save = true;
  std::uint64_t number = 0;  ///< of the save's line, in their order; not written
  /// The file was to be written anew, and may have been: base, depth, bytes and digest may be those
  /// of the old one. In a line of its own: rewriting_text().
  bool is_rewritten = false;
};

/// With a line end.
std::string journal_text(const JournalLine& line);
/// Before the file of a checkpoint takes another form.
std::string rewriting_text(std::string_view file, std::uint64_t now);
std::string removal_text(std::string_view file, std::string_view reason, std::uint64_t now);

/// What was found when a file was read. It holds for as long as the file has that size and time.
struct JournalCheck {
  std::uint64_t bytes = 0;
  std::uint64_t modified_ns = 0;
  bool is_whole = false;
};
/// The run went on from a file: it counts as the one that was saved last.
std::string resumed_text(std::string_view file, std::uint64_t now);
std::string check_text(std::string_view file, const JournalCheck& check, std::uint64_t now);

struct Journal {
  /// The last line of each file that was not removed since.
  std::unordered_map<std::string, JournalLine> saved;
  /// The same of those that were: what a crash kept from being removed or replaced is still there.
  std::unordered_map<std::string, JournalLine> removed;
  /// The last of each file.
  std::unordered_map<std::string, JournalCheck> checks;
  std::uint64_t lines = 0;
};
/// Lines that are not entries are passed over.
Journal parse_journal(std::string_view text);

}  // namespace thalia::store
