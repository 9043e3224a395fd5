// While a checkpoint is replaced, the journal does not say so: what it says is of the old file,
// and after a crash nobody could tell by the size which of the two is there.
#pragma once

#include <filesystem>
#include <string>

#include "store/run/journal.h"
#include "store/save/session.h"

namespace thalia::store {

/// If the file is the one that the line names, the line is written again, and true returned.
/// @throws IoError.
bool restore_line(const SaveSession& session, const std::filesystem::path& path,
                  const JournalLine& line);

/// From before the old file changes until the line of the new one is written.
class Replacement {
 public:
  /// Does nothing if there is no such file. @throws IoError.
  Replacement(const SaveSession& session, std::string_view phase,
              const std::filesystem::path& path);
  /// Where the save failed, and the old file is there.
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  void done() noexcept { line_.file.clear(); }

 private:
  const SaveSession session_;
  const std::filesystem::path path_;
  JournalLine line_;  ///< with an empty file: nothing is to be reported
};

}  // namespace thalia::store
