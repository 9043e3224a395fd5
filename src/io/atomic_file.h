// A file that appears at its path whole or not at all. docs/format.md, "Commit".
#pragma once

#include <filesystem>

#include "io/unique_fd.h"
#include "thalia/options.h"

namespace thalia::io {

struct AtomicFileOptions {
  Durability durability = Durability::full;
  /// Write to an unnamed O_TMPFILE file first, which a kill leaves no trace of; where the file
  /// system has none, or where this is false, to a file `.NAME.PID-RANDOM.thalia-tmp` beside the
  /// target.
  bool allow_unnamed = true;
};

/// Externally synchronised. Destroyed without commit(), it removes what it made.
class AtomicFile {
 public:
  /// Follows a symbolic link to the file it names (also one that does not exist yet). @throws
  /// IoError; UsageError (bad_argument) where the target exists and is no regular file.
  explicit AtomicFile(const std::filesystem::path& path, AtomicFileOptions options = {});
  ~AtomicFile();
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) noexcept;

  int fd() const noexcept { return fd_.get(); }  ///< open for reading and writing
  const std::filesystem::path& path() const noexcept {
    return target_;
  }  ///< of the target, links resolved

  /// Takes over mode and, where permitted, ownership of the file it replaces; syncs as the
  /// durability says; renames; syncs the folder. After an IoError before the rename the old file is
  /// in place and the temporary is gone.
  /// @return seconds spent in the sync calls.
  double commit();
  void discard() noexcept;

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;  ///< empty while the file has no name
  AtomicFileOptions options_;
  UniqueFd fd_;
};

}  // namespace thalia::io
