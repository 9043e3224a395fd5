// Files that are gone when their work is done, and names for those that need one. Such names are
// made only here.
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "io/posix_error.h"
#include "io/unique_fd.h"

namespace thalia::io {

/// `.NAME.PID-RANDOM.thalia-tmp`, with NAME cut back to whole UTF-8 characters where the folder
/// allows no longer names. @throws IoError.
std::string temporary_name(int folder_fd, const std::string& name);

/// The process that made a file of such a name; nullopt for any other name.
std::optional<std::int64_t> temporary_process(std::string_view name) noexcept;

inline constexpr int kMaxNameTries = 100;  // 64 random bits: a second try is already a miracle

/// Calls make(name) with new temporary names until it is true; returns that name. make() leaves
/// errno, EEXIST where the name is taken. @throws IoError of `operation` on `target`.
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

/// A file beside `target`, empty and for the owner alone, under a temporary name, for what opens
/// files by their names; removed with this.
class TemporaryFile {
 public:
  /// @throws IoError.
  explicit TemporaryFile(const std::filesystem::path& target);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  UniqueFd folder_fd_;
  std::string name_;
  std::filesystem::path path_;
};

}  // namespace thalia::io
