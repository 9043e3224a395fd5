// Files that are gone when their work is done, and names for those that need one. Such names are
// made only here.
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "io/system/posix_error.h"
#include "io/system/process.h"
#include "io/system/unique_fd.h"
#include "thalia/options.h"

namespace thalia::io {

/// `.NAME.PID-RANDOM.thalia-tmp`, with NAME cut back to whole UTF-8 characters where the folder
/// allows no longer names. @throws IoError.
std::string temporary_name(int folder_fd, const std::string& name);

/// The process that made a file of such a name; nullopt for any other name.
std::optional<std::int64_t> temporary_process(std::string_view name) noexcept;

inline constexpr int kMaxNameTries = 100;  // 64 random bits: a second try is already a miracle

/// Calls make(name) with new temporary names until it is true; returns that name. make() leaves
/// errno, EEXIST if the name is taken. @throws IoError of `operation` on `target`.
template <typename Make>
std::string with_free_name(int folder_fd, const std::string& name,
                           const std::filesystem::path& target, const char* operation, Make make) {
  for (int tries = 0;; ++tries) {
    std::string temporary = temporary_name(folder_fd, name);
    if (make(temporary.c_str())) return temporary;
    if (errno != EEXIST || tries == kMaxNameTries) throw_errno(operation, target);
  }
}

/// A file without a name for the owner alone, open for reading and writing: gone with its
/// descriptor. @throws IoError.
UniqueFd open_unnamed_file(const std::filesystem::path& folder);

/// The path by which this process reaches an open file, with or without a name, where /proc is
/// mounted.
std::filesystem::path descriptor_path(int fd);
/// True of a path that descriptor_path() may have made.
bool is_descriptor_path(const std::filesystem::path& path) noexcept;
/// The file at such a path once more, empty, if it has no name; none for every other path.
UniqueFd open_unnamed_again(const std::filesystem::path& path);

/// A file on the file system of `target`, empty and for the owner alone, for what opens files by
/// their paths; gone with this. It has no name, so that nothing of it is left however the process
/// ends: its path is good in this process alone, for as long as this lives. If the file system
/// has no such files, or /proc is not mounted, it has a temporary name beside the target, which a
/// forked child does not remove.
class TemporaryFile {
 public:
  /// @param within as in OutputOptions. @param allow_unnamed as in AtomicFileOptions. @throws
  /// IoError; UsageError, as open_beneath().
  explicit TemporaryFile(const std::filesystem::path& target,
                         const std::filesystem::path& within = {}, bool allow_unnamed = true);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  /// How it is written: it goes, so that nothing of it has to reach the disk.
  OutputOptions output() const { return {.durability = Durability::none, .within = within_}; }

 private:
  OwnProcess process_;
  UniqueFd folder_fd_;
  UniqueFd unnamed_;
  std::string name_;  ///< empty: it has none
  std::filesystem::path within_;
  std::filesystem::path path_;
};

}  // namespace thalia::io
