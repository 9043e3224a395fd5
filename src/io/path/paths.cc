// Questions about paths for callers who should not have to include POSIX headers.
#include "thalia/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "io/system/posix_error.h"

namespace thalia {

std::uint64_t file_bytes(const std::filesystem::path& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) io::throw_errno("stat", path);
  return static_cast<std::uint64_t>(status.st_size);
}

bool is_file(const std::filesystem::path& path) noexcept {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) noexcept {
  struct stat one;
  struct stat other;
  return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &other) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

std::filesystem::path resolved_path(const std::filesystem::path& path) {
  std::error_code error;
  // weakly_canonical() leaves a relative path of which nothing exists relative.
  std::filesystem::path resolved = std::filesystem::absolute(path, error);
  if (!error) resolved = std::filesystem::weakly_canonical(resolved, error);
  if (error) io::throw_errno("resolving", path, {}, error.value());
  return resolved;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

std::filesystem::path temporary_folder() {
  // The folder that std::filesystem names in its exception would not say that TMPDIR is to blame.
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (!error) return folder;
  const char* const wanted = std::getenv("TMPDIR");
  io::throw_errno("use of TMPDIR as the temporary folder", wanted == nullptr ? "/tmp" : wanted, {},
                  error.value());
}

bool remove_file(const std::filesystem::path& path) noexcept {
  return ::unlink(path.c_str()) == 0;
}

}  // namespace thalia
