// One writer a folder, and who that is.
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

#include "io/folder/folder.h"
#include "io/system/unique_fd.h"

namespace thalia::io {

/// Holds an exclusive flock(2) on the file `.lock` of a folder, in which it says who it is, until
/// it is destroyed or the process ends. A process that is forked does not hold it. The file stays.
/// Readers need no lock.
class FolderLock {
 public:
  /// @param wait for as long as another holds the lock. @throws IoError, with EWOULDBLOCK and the
  /// holder in the message where another holds it and `wait` is false; CancelledError.
  FolderLock(const std::filesystem::path& folder, bool wait, const std::stop_token& cancel = {});
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Why there is no lock, on a file system that has none; nullopt if it is held.
  const std::optional<std::string>& missing() const noexcept { return missing_; }

 private:
  void take(const std::filesystem::path& path, bool wait, const std::stop_token& cancel);
  void give_up() noexcept;
  UniqueFd fd_;
  std::optional<std::string> missing_;
};

/// Holds an exclusive flock(2) on the folder itself until it is destroyed, for as long as it takes
/// to write a few files: nothing is left in a folder that is somebody else's. Nothing is held on a
/// file system that has no such locks.
class HeldFolder {
 public:
  /// Waits for as long as another holds it. The folder is the one at the path once it is held; one
  /// that is missing is made, and goes again unless keep() was called or something is in it.
  /// @throws IoError; CancelledError.
  HeldFolder(const std::filesystem::path& path, Durability durability,
             const std::stop_token& cancel = {});
  ~HeldFolder();
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;

  const Folder& folder() const noexcept { return *folder_; }
  void keep() noexcept { made_->keep(); }

 private:
  std::optional<Folder> folder_;
  std::optional<MadeFolders> made_;
};

/// What the holder, or the last one, of a folder's lock wrote: "process 4242 (train) on node7,
/// since 2026-01-15T14:30:22Z". Empty if nobody did.
std::string lock_holder(const std::filesystem::path& folder);
/// True if some process holds it now; false also if that is not known.
bool is_locked(const std::filesystem::path& folder) noexcept;

}  // namespace thalia::io
