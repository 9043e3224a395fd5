// Resolves links where std::filesystem::canonical() would fail: the last name of the path need not
// exist yet, as for a file that is about to be written. The folder above it has to.
#include "io/path/real_path.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "io/system/posix_error.h"

namespace thalia::io {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as many as the kernel follows

fs::path canonical_path(const fs::path& path, std::error_code& error) {
  return fs::canonical(path.empty() ? fs::path(".") : path, error);
}

fs::path canonical_path(const fs::path& path) {
  std::error_code error;
  fs::path real = canonical_path(path, error);
  if (error) throw_errno("realpath", path, {}, error.value());
  return real;
}

}  // namespace

fs::path follow_links(fs::path path) {
  const fs::path asked_for = path;
  // Two links that name each other would go on for ever.
  for (int links = 0; links <= kMaxLinks; ++links) {
    std::error_code error;
    const fs::path next = fs::read_symlink(path, error);
    if (error == std::errc::invalid_argument || error == std::errc::no_such_file_or_directory)
      return path;  // no link, or nothing there yet
    if (error) throw_errno("readlink", path, {}, error.value());
    path = path.parent_path() / next;  // an absolute `next` replaces the left side
  }
  throw_errno("readlink", asked_for, {}, ELOOP);
}

fs::path real_path(const fs::path& path) {
  const fs::path target = follow_links(path);
  const fs::path name = target.filename();
  // These name a folder, so all of the path has to exist.
  if (name.empty() || name == "." || name == "..") return canonical_path(target);
  return canonical_path(target.parent_path()) / name;
}

std::optional<fs::path> find_real_path(const fs::path& path) {
  std::error_code error;
  fs::path real = canonical_path(path, error);
  if (is_out_of_resources(error.value())) throw_errno("realpath", path, {}, error.value());
  return error ? std::nullopt : std::optional(std::move(real));
}

bool lies_in(const fs::path& real, const fs::path& real_folder) {
  // By whole names: as text, /data2 would begin with /data.
  return std::mismatch(real_folder.begin(), real_folder.end(), real.begin(), real.end()).first ==
         real_folder.end();
}

}  // namespace thalia::io
