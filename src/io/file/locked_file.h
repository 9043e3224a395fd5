// A file that one program at a time changes in place. docs/format/writing.md, "In-place append".
#pragma once

#include <filesystem>
#include <stop_token>

#include "io/system/unique_fd.h"

namespace thalia::io {

/// Holds an exclusive flock(2) on the file, which readers do not need, until it is destroyed.
/// Externally synchronised.
class LockedFile {
 public:
  enum class Access { read, read_write };

  /// Locks the file that is at the path once the lock is held: where a rename replaced it
  /// meanwhile, the new one. @param wait for as long as another holds the lock.
  /// @throws IoError, with EWOULDBLOCK where another holds the lock and `wait` is false; UsageError
  /// (bad_argument) if the path is no regular file; CancelledError while it waits.
  LockedFile(const std::filesystem::path& path, Access access, bool wait,
             const std::stop_token& cancel = {});

  int fd() const noexcept { return fd_.get(); }
  const std::filesystem::path& path() const noexcept { return path_; }
  /// False if the path names another file by now, or none. @throws IoError.
  bool is_at_path() const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
};

}  // namespace thalia::io
