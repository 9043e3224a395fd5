// One name after the other, each relative to the folder that the one before opened and never
// through a link: whatever changes meanwhile, what is opened lies below the first folder.
#include "io/folder/inner_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "io/file/open_descriptor.h"
#include "io/file/posix_file.h"
#include "io/system/posix_error.h"

namespace thalia::io {
namespace {

[[noreturn]] void refuse_inner(const std::filesystem::path& path, std::string value,
                               std::string bound) {
  throw UsageError(ErrorCode::bad_argument, {},
                   {.path = path.string(), .value = std::move(value), .bound = std::move(bound)});
}

}  // namespace

UniqueFd open_inner_descriptor(const Folder& folder, std::span<const std::string> names) {
  std::filesystem::path path = folder.path();
  UniqueFd inner;
  int at = folder.fd();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!is_inner_name(names[i]))
      refuse_inner(folder.path(), printable(names[i]), "a name that stays in its folder");
    path /= names[i];
    const bool is_last = i + 1 == names.size();
    // Not to wait where a queue lies in the file's place.
    const int flags = O_RDONLY | (is_last ? O_NONBLOCK | O_NOCTTY : O_DIRECTORY);
    UniqueFd next = open_name(at, names[i].c_str(), flags, 0, path);
    if (!next && errno == ENOTDIR) refuse_inner(path, "a file", "a folder");
    if (!next) throw_errno("open", path);
    inner = std::move(next);
    at = inner.get();
  }
  struct stat status;
  if (::fstat(at, &status) != 0) throw_errno("fstat", path);
  if (!S_ISREG(status.st_mode)) refuse_inner(path, not_a_file(status.st_mode), "a regular file");
  return inner;
}

std::shared_ptr<const FileBytes> open_inner_file(const Folder& folder,
                                                 std::span<const std::string> names,
                                                 Access access) {
  UniqueFd inner = open_inner_descriptor(folder, names);
  std::filesystem::path path = folder.path();
  for (const std::string& name : names) path /= name;
  return open_descriptor(std::move(inner), path, access);
}

}  // namespace thalia::io
