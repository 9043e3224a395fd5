// Temporary names begin with a dot and end in `.thalia-tmp`, so that listings and patterns such as
// `*.thalia` pass them by (docs/format/writing.md, "Commit"). All files here are created with
// O_EXCL or without a name: none is opened that somebody else put there.
#include "io/output/temporary_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <climits>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>

#include "io/file/posix_file.h"
#include "io/path/beneath.h"
#include "io/system/random.h"
#include "thalia/files.h"

namespace thalia::io {
namespace {

constexpr std::string_view kDescriptors = "/proc/self/fd/";

// O_PATH: creating and removing files needs no right to list the folder.
UniqueFd open_folder(const std::filesystem::path& folder,
                     const std::filesystem::path& within = {}) {
  UniqueFd fd = open_beneath(within, folder, O_PATH | O_DIRECTORY);
  if (!fd) throw_errno("open", folder);
  return fd;
}

UniqueFd create_in(int folder_fd, const char* name) {
  return UniqueFd(retry_interrupted(
      [&] { return ::openat(folder_fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600); }));
}

}  // namespace

std::string temporary_name(int folder_fd, const std::string& name) {
  std::uint64_t random;
  fill_random(std::as_writable_bytes(std::span(&random, 1)));
  const std::string suffix = fmt::format(".{}-{:016x}.thalia-tmp", ::getpid(), random);
  const long limit = ::fpathconf(folder_fd, _PC_NAME_MAX);
  const std::size_t longest = limit > 0 ? static_cast<std::size_t>(limit) : NAME_MAX;
  std::size_t kept = name.size();
  if (1 + kept + suffix.size() > longest) {
    kept = longest > 1 + suffix.size() ? longest - 1 - suffix.size() : 0;
    // 0b10...... is the second or a later byte of a UTF-8 character: cut before the character.
    while (kept > 0 && (static_cast<unsigned char>(name[kept]) & 0xc0) == 0x80) --kept;
  }
  return fmt::format(".{}{}", std::string_view(name).substr(0, kept), suffix);
}

std::optional<std::int64_t> temporary_process(std::string_view name) noexcept {
  constexpr std::string_view kEnding = ".thalia-tmp";
  if (!name.starts_with('.') || !name.ends_with(kEnding)) return std::nullopt;
  name.remove_suffix(kEnding.size());
  const std::size_t dot = name.rfind('.');
  const std::size_t dash = name.rfind('-');
  if (dot == 0 || dash == std::string_view::npos || dash < dot) return std::nullopt;
  if (name.size() - dash != 17) return std::nullopt;
  std::int64_t process = 0;
  const auto [stop, error] = std::from_chars(name.data() + dot + 1, name.data() + dash, process);
  if (error != std::errc() || stop != name.data() + dash || process <= 0) return std::nullopt;
  return process;
}

UniqueFd open_unnamed_file(const std::filesystem::path& folder) {
  UniqueFd fd(retry_interrupted(
      [&] { return ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); }));
  if (fd) return fd;
  // If the file system has none: EISDIR from kernels that take O_TMPFILE for O_DIRECTORY.
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
    throw_errno("open with O_TMPFILE", folder);
  const UniqueFd folder_fd = open_folder(folder);
  const std::string name = with_free_name(folder_fd.get(), "unnamed", folder,
                                          "open of the temporary", [&](const char* free_name) {
                                            fd = create_in(folder_fd.get(), free_name);
                                            return bool(fd);
                                          });
  // From here on the descriptor alone keeps the file. A kill before it leaves an empty file.
  if (::unlinkat(folder_fd.get(), name.c_str(), 0) != 0) throw_errno("unlink", folder / name);
  return fd;
}

std::filesystem::path descriptor_path(int fd) {
  return fmt::format("{}{}", kDescriptors, fd);
}

bool is_descriptor_path(const std::filesystem::path& path) noexcept {
  return path.native().starts_with(kDescriptors);
}

UniqueFd open_unnamed_again(const std::filesystem::path& path) {
  if (!is_descriptor_path(path)) return {};
  UniqueFd fd(
      retry_interrupted([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY); }));
  struct stat status;
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 0)
    return {};
  set_file_size(fd.get(), 0, path);
  return fd;
}

TemporaryFile::TemporaryFile(const std::filesystem::path& target,
                             const std::filesystem::path& within, bool allow_unnamed)
    : folder_fd_(open_folder(folder_of(target), within)), within_(within) {
  // With O_EXCL nobody can give it a name.
  if (allow_unnamed)
    unnamed_.reset(retry_interrupted([&] {
      return ::openat(folder_fd_.get(), ".", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    }));
  if (unnamed_ && ::access(descriptor_path(unnamed_.get()).c_str(), F_OK) == 0) {
    path_ = descriptor_path(unnamed_.get());
    return;
  }
  unnamed_.reset();
  name_ = with_free_name(
      folder_fd_.get(), target.filename().string(), target, "open of the temporary",
      [&](const char* free_name) { return bool(create_in(folder_fd_.get(), free_name)); });
  path_ = target.parent_path() / name_;
}

TemporaryFile::~TemporaryFile() {
  if (!name_.empty() && process_.is_this()) ::unlinkat(folder_fd_.get(), name_.c_str(), 0);
}

}  // namespace thalia::io
