// openat2() with RESOLVE_BENEATH would open such a path in one call, but older kernels have none
// and sandboxes deny it. Paths here have two or three names below their folder, so one way for all
// machines costs little: a name that is no link, and is neither "." nor "..", cannot lead out.
#include "io/path/beneath.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "io/file/posix_file.h"
#include "io/system/posix_error.h"
#include "thalia/text.h"

namespace thalia::io {
namespace {

namespace fs = std::filesystem;

// O_PATH: to go through a folder needs no right to list it.
constexpr int kOnTheWay = O_PATH | O_DIRECTORY | O_CLOEXEC;

// Without ".", and without the empty name of a path that ends with a slash.
std::vector<std::string> names_of(const fs::path& path) {
  std::vector<std::string> names;
  for (const fs::path& name : path.lexically_normal())
    if (!name.empty() && name != ".") names.push_back(name.string());
  return names;
}

// The names of `path` after `within`.
std::vector<std::string> names_below(const fs::path& within, const fs::path& path) {
  const std::vector<std::string> front = names_of(within), all = names_of(path);
  const auto [at, behind] = std::ranges::mismatch(front, all);
  std::vector<std::string> names(behind, all.end());
  if (at == front.end() && std::ranges::all_of(names, is_inner_name)) return names;
  throw UsageError(ErrorCode::bad_argument, {},
                   {.path = path.string(),
                    .value = "a path that leads elsewhere",
                    .bound = fmt::format("one below {}", printable(within.string()))});
}

}  // namespace

bool is_inner_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

void refuse_link(const fs::path& path) {
  throw UsageError(ErrorCode::bad_argument, {},
                   {.path = path.string(),
                    .value = "a symbolic link",
                    .bound = "none: links are not followed here"});
}

UniqueFd open_name(int folder_fd, const char* name, int flags, unsigned mode,
                   const fs::path& path) {
  UniqueFd fd(retry_interrupted(
      [&] { return ::openat(folder_fd, name, flags | O_NOFOLLOW | O_CLOEXEC, mode); }));
  // ELOOP says that the name is a link. So may ENOTDIR, if a folder is asked for.
  if (fd || (errno != ELOOP && errno != ENOTDIR)) return fd;
  const int code = errno;
  struct stat status;
  if (::fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode))
    refuse_link(path);
  errno = code;
  return fd;
}

UniqueFd open_beneath(const fs::path& within, const fs::path& path, int flags, unsigned mode) {
  const std::vector<std::string> names =
      within.empty() ? std::vector<std::string>() : names_below(within, path);
  if (names.empty()) {
    return UniqueFd(
        retry_interrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); }));
  }
  UniqueFd at(retry_interrupted([&] { return ::open(within.c_str(), kOnTheWay); }));
  fs::path reached = within;
  for (std::size_t i = 0; at && i < names.size(); ++i) {
    reached /= names[i];
    const bool is_last = i + 1 == names.size();
    at = open_name(at.get(), names[i].c_str(), is_last ? flags : kOnTheWay, is_last ? mode : 0,
                   reached);
  }
  return at;
}

void make_folders_beneath(const fs::path& within, const fs::path& folder, Durability durability) {
  UniqueFd at = open_beneath({}, within, O_RDONLY | O_DIRECTORY);
  if (!at) throw_errno("open", within);
  fs::path reached = within;
  for (const std::string& name : names_below(within, folder)) {
    const fs::path above = reached;
    reached /= name;
    if (::mkdirat(at.get(), name.c_str(), 0777) == 0) {
      // Without it, a power cut could take the new folder, and with it a file that was synced.
      if (durability == Durability::full) sync_file(at.get(), true, above);
    } else if (errno != EEXIST) {
      throw_errno("mkdir", reached);
    }
    at = open_name(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY, 0, reached);
    if (!at) throw_errno("open", reached);
  }
}

}  // namespace thalia::io
