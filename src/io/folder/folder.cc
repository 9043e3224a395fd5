// Folder's calls are by its descriptor, and look at a name itself and not at what a link leads to:
// a path that somebody renames, or replaces by a link, leads nowhere else. A name that goes between
// two calls is no error of a listing.
#include "io/folder/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "io/file/posix_file.h"
#include "io/output/temporary_file.h"
#include "io/path/beneath.h"
#include "io/path/real_path.h"
#include "io/system/posix_error.h"
#include "thalia/error.h"

namespace thalia::io {
namespace {

EntryKind kind_of_mode(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::file;
  if (S_ISLNK(mode)) return EntryKind::link;
  return S_ISDIR(mode) ? EntryKind::folder : EntryKind::other;
}

// nullopt if the file system does not say it with the name.
std::optional<EntryKind> kind_of_entry(unsigned char type) {
  switch (type) {
    case DT_REG:
      return EntryKind::file;
    case DT_LNK:
      return EntryKind::link;
    case DT_DIR:
      return EntryKind::folder;
    case DT_UNKNOWN:
      return std::nullopt;
    default:
      return EntryKind::other;
  }
}

struct CloseStream {
  void operator()(DIR* stream) const noexcept { ::closedir(stream); }
};

}  // namespace

Folder::Folder(const std::filesystem::path& path, const std::filesystem::path& within)
    : path_(path), fd_(open_beneath(within, path, O_RDONLY | O_DIRECTORY)) {
  if (!fd_) throw_errno("open", path);
}

std::optional<Folder> Folder::find(const std::filesystem::path& path,
                                   const std::filesystem::path& within) {
  UniqueFd fd = open_beneath(within, path, O_RDONLY | O_DIRECTORY);
  if (fd) return Folder(path, std::move(fd));
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  throw_errno("open", path);
}

std::vector<FolderEntry> Folder::entries() const {
  // A descriptor of its own: the stream closes it, and reads from the beginning.
  UniqueFd own(retry_interrupted(
      [&] { return ::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!own) throw_errno("open", path_);
  const std::unique_ptr<DIR, CloseStream> stream(::fdopendir(own.get()));
  if (!stream) throw_errno("fdopendir", path_);
  own.release();
  std::vector<FolderEntry> found;
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(stream.get());
    if (entry == nullptr) {
      if (errno != 0) throw_errno("readdir", path_);
      return found;
    }
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    std::optional<EntryKind> kind = kind_of_entry(entry->d_type);
    if (!kind) {
      const std::optional<EntryFacts> known = facts(name);
      if (!known) continue;  // gone since
      kind = known->kind;
    }
    found.push_back({std::move(name), *kind});
  }
}

std::optional<EntryFacts> Folder::facts(const std::string& name) const {
  struct stat status;
  if (::fstatat(fd_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::nullopt;
    throw_errno("fstatat", path_ / name);
  }
  return EntryFacts{kind_of_mode(status.st_mode), static_cast<std::uint64_t>(status.st_size),
                    static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                        static_cast<std::uint64_t>(status.st_mtim.tv_nsec),
                    static_cast<std::uint64_t>(status.st_ino)};
}

std::optional<std::string> Folder::link_target(const std::string& name) const {
  std::array<char, PATH_MAX> target;
  const ssize_t length = ::readlinkat(fd_.get(), name.c_str(), target.data(), target.size());
  if (length >= 0) return std::string(target.data(), static_cast<std::size_t>(length));
  if (errno == ENOENT || errno == EINVAL) return std::nullopt;
  throw_errno("readlinkat", path_ / name);
}

bool Folder::replace_link(const std::string& name, const std::string& target) const {
  std::string temporary;
  try {
    temporary = with_free_name(fd_.get(), name, path_ / name, "symlinkat", [&](const char* free) {
      return ::symlinkat(target.c_str(), fd_.get(), free) == 0;
    });
  } catch (const IoError& error) {
    // FAT, many network file systems, and servers that forbid it.
    const int code = error.errno_value();
    if (code == EPERM || code == EOPNOTSUPP || code == ENOSYS || code == EINVAL) return false;
    throw;
  }
  if (::renameat(fd_.get(), temporary.c_str(), fd_.get(), name.c_str()) == 0) return true;
  const int code = errno;
  ::unlinkat(fd_.get(), temporary.c_str(), 0);
  throw_errno("rename", path_ / name, {}, code);
}

UniqueFd Folder::open(const std::string& name, int flags, unsigned mode) const {
  UniqueFd fd = open_name(fd_.get(), name.c_str(), flags, mode, path_ / name);
  if (!fd) throw_errno("open", path_ / name);
  return fd;
}

bool Folder::remove(const std::string& name) const {
  if (::unlinkat(fd_.get(), name.c_str(), 0) == 0) return true;
  if (errno == ENOENT) return false;
  throw_errno("unlink", path_ / name);
}

void Folder::sync() const {
  sync_file(fd_.get(), true, path_);
}

bool make_folder(const std::filesystem::path& folder, Durability durability) {
  if (::mkdir(folder.c_str(), 0777) != 0) {
    if (errno != EEXIST) throw_errno("mkdir", folder);
    return false;
  }
  // Without it, a power cut could take the new folder, and with it a file that was synced.
  const std::filesystem::path parent = folder.parent_path();
  if (durability == Durability::full) Folder(parent.empty() ? "." : parent).sync();
  return true;
}

void sync_name(const std::filesystem::path& folder) {
  const std::filesystem::path parent = real_path(folder).parent_path();
  try {
    Folder(parent).sync();
  } catch (const IoError& error) {
    if (error.errno_value() != EACCES) throw;
  }
}

void make_folders(const std::filesystem::path& folder, Durability durability) {
  MadeFolders(folder, durability).keep();
}

MadeFolders::MadeFolders(const std::filesystem::path& folder, Durability durability) {
  std::vector<std::filesystem::path> missing;
  for (std::filesystem::path at = folder; !at.empty(); at = at.parent_path()) {
    if (::access(at.c_str(), F_OK) == 0 || at == at.parent_path()) break;
    missing.push_back(at);
  }
  made_.reserve(missing.size());
  try {
    // A path that ends with a slash is there twice.
    for (auto at = missing.rbegin(); at != missing.rend(); ++at)
      if (make_folder(*at, durability)) made_.push_back(*at);
  } catch (...) {
    remove_made();
    throw;
  }
}

MadeFolders::~MadeFolders() {
  remove_made();
}

void MadeFolders::remove_made() noexcept {
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) ::rmdir(folder->c_str());
}

}  // namespace thalia::io
