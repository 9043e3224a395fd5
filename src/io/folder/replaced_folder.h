// A folder that several processes write, and that takes the place of another one as a whole: a save
// of DIR/NAME is written to DIR/.NAME.saving, which gets the name in the last step. Who saves holds
// an flock(2) on that folder, so that others can tell what a killed save has left. What goes is
// DIR/.NAME.old for a moment on file systems that cannot exchange two names.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/folder/folder.h"
#include "thalia/options.h"

namespace thalia::io {

/// What such a folder holds.
struct FolderContent {
  /// Whether a save writes a file of this name: nothing else is ever removed, and no folder with
  /// something else in it is replaced. Called from the thread that calls.
  std::function<bool(const std::string& name)> is_own{};
  std::string whole{};    ///< the file that a folder has once all of it is there
  std::string failed{};   ///< the file that says that a save was given up
  bool exchanges = true;  ///< false: two names are not exchanged, as on file systems that cannot
};

/// Tells other processes that a folder is in use, until it is destroyed or the process ends.
/// Externally synchronised.
class FolderUse {
 public:
  /// nullptr if another has it, unless `wait`. @throws IoError, also if there are no such locks.
  static std::shared_ptr<FolderUse> take(const std::filesystem::path& path, bool wait);
  const Folder& folder() const noexcept { return folder_; }
  /// Whether it still has that name: a lock is of a folder, and a name may get another one.
  bool is_at(const std::filesystem::path& path) const;
  /// Others may have it from now on.
  void end() noexcept;

 private:
  explicit FolderUse(const std::filesystem::path& path) : folder_(path) {}
  Folder folder_;
};

/// Where a save of the folder writes. @throws IoError.
std::filesystem::path saving_folder(const std::filesystem::path& folder);
/// The folder, or what was there before, if a save was killed while it took its place.
std::filesystem::path readable_folder(const std::filesystem::path& folder);

/// Makes an empty folder to save to, with those above it, and clears away what killed saves left
/// beside it. @return what is to be held until publish_folder(); nullptr where the file system has
/// no locks. @throws UsageError: (exists) where the folder holds something else, or holds anything
/// and `replace` is false; (wrong_state) while another process saves to it; IoError.
std::shared_ptr<FolderUse> begin_folder(const std::filesystem::path& folder, bool replace,
                                        const FolderContent& content);
/// Where a step of a save failed: other saves may clear it away, however long it is held.
void give_up_folder(const std::filesystem::path& folder, const FolderContent& content) noexcept;
/// Puts what was saved in the folder's place. @throws IoError; the old or the new is there then.
void publish_folder(const std::filesystem::path& folder, Durability durability,
                    const FolderContent& content);
/// Removes a save's own files from a folder, but for those that stay. @throws IoError.
void clear_folder(const std::filesystem::path& folder, const FolderContent& content,
                  const std::function<bool(const std::string& name)>& stays = {});

/// The first name, of a folder in `parent`, becomes the second, in place of nothing or an empty
/// folder. @return false where something else is there. @throws IoError.
bool rename_folder(const Folder& parent, const std::string& from, const std::string& to);
/// A file of the folder takes the name of another one, after others are gone, in this order: all of
/// it is on the disk, and no crash leaves one that is gone beside the new one. @throws IoError.
void publish_file(const Folder& folder, const std::string& from, const std::string& to,
                  const std::vector<std::string>& gone);

}  // namespace thalia::io
