// A file that appears at its path whole or not at all. docs/format/writing.md, "Commit".
#pragma once

#include <filesystem>
#include <span>
#include <stop_token>
#include <string>

#include "io/system/process.h"
#include "io/system/unique_fd.h"
#include "thalia/options.h"

namespace thalia::io {

struct AtomicFileOptions {
  OutputOptions output{};
  /// Write to an unnamed O_TMPFILE file first. If the process is killed before commit(), nothing of
  /// it is left; in commit() a temporary name exists only between the two calls that replace an old
  /// file. If the file system has no such files, or if this is false, the file is called
  /// `.NAME.PID-RANDOM.thalia-tmp` and lies beside the target.
  bool allow_unnamed = true;
  /// commit() puts nothing in place once a stop was requested. Anybody who makes a file for a
  /// caller passes on the caller's token: every output ends in commit(), so none appears after a
  /// stop.
  std::stop_token cancel{};
};

/// Externally synchronised. Destroyed without commit(), it removes what it made. In a forked child,
/// which shares the file with its parent, commit() is a UsageError, and nothing is removed.
class AtomicFile {
 public:
  /// A symbolic link is followed to the file it names (also one that does not exist yet) where
  /// OutputOptions::link says so, and refused otherwise. Holds the target's folder open, so that a
  /// later change of the working directory does not matter. The path of a TemporaryFile without a
  /// name is written to as it is: commit() puts nothing in place then. @throws IoError; UsageError:
  /// (bad_argument) if the target exists and is no regular file, or is a link that is not
  /// followed, (exists) if it does and is not to be replaced.
  explicit AtomicFile(const std::filesystem::path& path, AtomicFileOptions options = {});
  ~AtomicFile();
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) noexcept;

  int fd() const noexcept { return fd_.get(); }  ///< open for reading and writing; -1 once done
  const std::filesystem::path& path() const noexcept {
    return target_;
  }  ///< of the target; of a link that was followed, the path that it leads to

  /// In a forked child.
  bool is_foreign() const noexcept { return !process_.is_this(); }
  /// Before anything is written to it. @throws UsageError (wrong_state) in a forked child.
  void require_own() const;
  /// The part of commit() that changes the file's metadata, for a caller that syncs the file
  /// itself between the two. @throws IoError; the temporary is gone then.
  void prepare();
  /// Takes over the mode and, where permitted, the ownership of the file it replaces (not its ACL
  /// or extended attributes; its other hard links keep the old contents; a new file has 0666 less
  /// the umask); syncs as the durability says; renames; syncs the folder.
  /// @param synced the caller has synced the file as the durability says, after prepare().
  /// @return seconds spent in the sync calls.
  /// @throws IoError: before the rename, the old file is in place and the temporary is gone; only
  /// when the sync of the folder fails (the error's path is the folder's) the new file is in place
  /// but may be lost with the power. UsageError: (wrong_state) after a commit or discard; (exists)
  /// if a file that is not to be replaced appeared.
  /// CancelledError if a stop was requested before the rename.
  double commit(bool synced = false);
  void discard() noexcept;

 private:
  bool open_unnamed(unsigned mode);
  void open_named(unsigned mode);
  void take_over_owner_and_mode();
  bool link_unnamed();
  void rename_temporary();
  std::filesystem::path folder() const;

  OwnProcess process_;
  std::filesystem::path target_;
  std::string name_;       ///< of the target in its folder
  std::string temporary_;  ///< name in the folder; empty while the file has none
  AtomicFileOptions options_;
  bool prepared_ = false;
  UniqueFd folder_fd_;  ///< none of a file without a name
  UniqueFd fd_;
};

/// What AtomicFile would refuse of the file's name, for outputs that are written at the end.
/// @throws UsageError: (exists) if a file is there and is not to be replaced, (bad_argument)
/// if a link is there that is not followed; IoError (ENAMETOOLONG) if no file can have this
/// path.
void check_output_name(const std::filesystem::path& path, const OutputOptions& output);
/// @throws UsageError (bad_argument) if the path leads to one of the files that are read: it
/// would take the place of what is needed to make it, or to read it again.
void refuse_read(const std::filesystem::path& path, std::span<const std::filesystem::path> read);
/// @throws UsageError (exists): of a file that is not to be replaced, or to go.
[[noreturn]] void fail_exists(const std::filesystem::path& path);

}  // namespace thalia::io
