// One folder by its descriptor: what is in it, links that are replaced whole, names that go.
// Everything is done relative to the open folder, so a folder that is moved meanwhile stays itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/system/unique_fd.h"
#include "thalia/options.h"

namespace thalia::io {

enum class EntryKind { file, link, folder, other };

struct FolderEntry {
  std::string name;
  EntryKind kind;
};

/// The facts of a name itself, not of what a link leads to.
struct EntryFacts {
  EntryKind kind;
  std::uint64_t bytes;
  std::uint64_t modified_ns;  ///< since 1970
  std::uint64_t number = 0;   ///< that the file system knows it by: another file has another one

  friend bool operator==(const EntryFacts&, const EntryFacts&) = default;
};

/// Externally synchronised. Names are single names in the folder, no paths.
class Folder {
 public:
  /// @param within a folder that the path begins with: below it no link is followed. Empty: links
  /// are. @throws IoError; UsageError, as open_beneath().
  explicit Folder(const std::filesystem::path& path, const std::filesystem::path& within = {});
  /// nullopt if there is none. @throws as above.
  static std::optional<Folder> find(const std::filesystem::path& path,
                                    const std::filesystem::path& within = {});

  const std::filesystem::path& path() const noexcept { return path_; }
  int fd() const noexcept { return fd_.get(); }

  /// Without "." and "..", in no order. @throws IoError.
  std::vector<FolderEntry> entries() const;
  /// nullopt if there is nothing of that name. @throws IoError.
  std::optional<EntryFacts> facts(const std::string& name) const;
  /// What a link says; nullopt if the name is no link, or there is none. @throws IoError.
  std::optional<std::string> link_target(const std::string& name) const;
  /// Puts a symbolic link in place of what is there, in one step. @return false if the file
  /// system has no such links. @throws IoError.
  bool replace_link(const std::string& name, const std::string& target) const;
  /// A file of the folder, as openat(2) opens it. @throws IoError; UsageError (bad_argument) for a
  /// link.
  UniqueFd open(const std::string& name, int flags, unsigned mode = 0) const;
  /// @return false if there was none. @throws IoError.
  bool remove(const std::string& name) const;
  /// What was done to names is on the disk afterwards. @throws IoError.
  void sync() const;

 private:
  Folder(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::filesystem::path path_;
  UniqueFd fd_;
};

/// Makes a folder and those above it that are missing; with Durability::full, the folders that got
/// a new name are synced. @throws IoError.
void make_folders(const std::filesystem::path& folder, Durability durability);
/// The same for one whose parent is there. @return false if the folder is. @throws IoError.
bool make_folder(const std::filesystem::path& folder, Durability durability);

/// A folder and those above it, as by make_folders(), for something that may fail: those that were
/// made here and are empty go again, unless it was done.
class MadeFolders {
 public:
  /// @throws IoError.
  MadeFolders(const std::filesystem::path& folder, Durability durability);
  ~MadeFolders();
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;
  void keep() noexcept { made_.clear(); }

 private:
  void remove_made() noexcept;
  std::vector<std::filesystem::path> made_;  ///< the outermost first
};

/// That the folder has its name is on the disk afterwards, no matter who made it. If this
/// process must not read the folder above, that is left to who may. @throws IoError.
void sync_name(const std::filesystem::path& folder);

}  // namespace thalia::io
