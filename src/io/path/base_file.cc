// Bases of deltas are named by files that nobody vouches for. So a name leads to candidates only
// (base_places), each candidate is opened without effects on anything but a regular file
// (open_base), and the policy of the caller says which folder it has to lie in. Whether a candidate
// is the base that is meant is decided elsewhere, by its identity.
//
// A place that does not fit is no error here but a reason: another place may still fit, and the
// caller says at the end why none did. Only a lack of descriptors or memory is thrown, because then
// the next place would not fare better.
#include "io/path/base_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "io/file/open_descriptor.h"
#include "io/file/posix_file.h"
#include "io/path/real_path.h"
#include "io/system/posix_error.h"
#include "io/system/unique_fd.h"
#include "thalia/files.h"

namespace thalia::io {
namespace {

namespace fs = std::filesystem;

// If the folder is not there, nothing lies in it.
bool is_below(const fs::path& real, const fs::path& folder) {
  const std::optional<fs::path> real_folder = find_real_path(folder);
  return real_folder && lies_in(real, *real_folder);
}

// Asks for the file that is open, whatever its name has come to mean since.
bool is_below(int fd, const fs::path& folder) {
  std::error_code error;
  const std::string name = fmt::format("/proc/self/fd/{}", fd);
  const fs::path file = fs::read_symlink(name, error);
  if (is_out_of_resources(error.value())) throw_errno("readlink", name, {}, error.value());
  return !error && is_below(file, folder);
}

std::string text_of(int errno_value) {
  return std::generic_category().message(errno_value);
}

}  // namespace

std::string base_name(const fs::path& base, const fs::path& target) {
  const fs::path folder = resolved_path(target).parent_path();
  return resolved_path(base).lexically_relative(folder).generic_string();
}

std::vector<fs::path> base_places(const fs::path& from, std::string_view named,
                                  const std::vector<fs::path>& search, const BasePolicy& policy) {
  std::vector<fs::path> found;
  // The first of equal places is kept: the list is in order of likelihood.
  const auto add = [&](const fs::path& path) {
    fs::path plain = path.lexically_normal();
    if (std::find(found.begin(), found.end(), plain) == found.end())
      found.push_back(std::move(plain));
  };
  const fs::path base(named);
  std::vector<fs::path> folders{from.parent_path()};
  // A link's file has neighbours of its own: its folder counts too if it is another one.
  if (const std::optional<fs::path> real = find_real_path(from)) {
    const fs::path folder = real->parent_path();
    if (!is_same_file(folder, folder_of(from))) folders.push_back(folder);
  }
  if (!base.is_absolute() || policy.absolute) {
    for (const fs::path& folder : folders) add(folder / base);  // an absolute one stays itself
  }
  for (const fs::path& folder : folders) add(folder / base.filename());
  for (const fs::path& folder : search) add(folder / base.filename());
  return found;
}

BaseFile open_base(const fs::path& place, Access access, const BasePolicy& policy) {
  constexpr const char* kOutside = "outside the folder that bases may lie in";
  // Checked twice. Before the open, because opening a device or a queue may have an effect. After
  // it, on the descriptor, because the name may mean another file by then.
  struct stat status;
  if (::stat(place.c_str(), &status) != 0)
    return {nullptr, errno == ENOENT || errno == ENOTDIR ? "" : text_of(errno)};
  if (!S_ISREG(status.st_mode)) return {nullptr, not_a_file(status.st_mode)};
  if (!policy.folder.empty()) {
    const std::optional<fs::path> real = find_real_path(place);
    if (!real || !is_below(*real, policy.folder)) return {nullptr, kOutside, true};
  }
  UniqueFd fd(retry_interrupted(
      [&] { return ::open(place.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  if (!fd) {
    if (is_out_of_resources(errno)) throw_errno("open", place);
    return {nullptr, errno == ENOENT ? "" : text_of(errno)};
  }
  if (::fstat(fd.get(), &status) != 0) throw_errno("fstat", place);
  if (!S_ISREG(status.st_mode)) return {nullptr, not_a_file(status.st_mode)};
  if (!policy.folder.empty() && !is_below(fd.get(), policy.folder))
    return {nullptr, kOutside, true};
  return {open_descriptor(std::move(fd), place, access)};
}

}  // namespace thalia::io
