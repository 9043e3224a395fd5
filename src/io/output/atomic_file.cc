// The steps of a commit (docs/format/writing.md, "Commit"), in the order in which a crash at any
// point leaves the old file or the whole new one: write, take over mode and owner, sync the file,
// give it its name, sync the folder. The name is given by one linkat() or one renameat(); both are
// atomic.
//
// A path is followed to its target in front, where the caller asks for that, and nowhere else.
// Everything goes through folder_fd_, so the target stays the same file if somebody changes the
// working directory or renames the folder meanwhile. temporary_ is the one name to be removed: it
// is set exactly as long as a file of that name exists and is ours.
#include "io/output/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "base/stop_question.h"
#include "io/file/posix_file.h"
#include "io/output/temporary_file.h"
#include "io/path/beneath.h"
#include "io/path/real_path.h"
#include "io/system/posix_error.h"
#include "thalia/error.h"
#include "thalia/files.h"

namespace thalia::io {
namespace {

// The file at the target, if there is one; none where a link is that is replaced. Anything else is
// refused: a rename would destroy it.
std::optional<struct stat> stat_target(int folder_fd, const std::string& name,
                                       const std::filesystem::path& target, OutputLink link) {
  struct stat status;
  if (::fstatat(folder_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::nullopt;
    throw_errno("fstatat", target);
  }
  if (S_ISLNK(status.st_mode)) {
    if (link == OutputLink::replaced) return std::nullopt;
    refuse_link(target);
  }
  if (!S_ISREG(status.st_mode))
    throw UsageError(ErrorCode::bad_argument, not_a_file(status.st_mode),
                     {.path = target.string()});
  return status;
}

// linkat() with AT_EMPTY_PATH would do without /proc, but asks for a capability before Linux 6.10.
std::string proc_path(int fd) {
  return descriptor_path(fd).string();
}

std::filesystem::path target_of(const std::filesystem::path& path, const OutputOptions& output) {
  return output.follows_link() && !is_descriptor_path(path) ? follow_links(path) : path;
}

// False if it is not permitted, or the owner has no number in this user namespace (EINVAL).
bool change_owner(int fd, uid_t user, gid_t group, const std::filesystem::path& path) {
  if (::fchown(fd, user, group) == 0) return true;
  if (errno != EPERM && errno != EINVAL) throw_errno("fchown", path);
  return false;
}

}  // namespace

void fail_exists(const std::filesystem::path& path) {
  throw UsageError(ErrorCode::exists, "the file is there already", {.path = path.string()});
}

void refuse_read(const std::filesystem::path& path, std::span<const std::filesystem::path> read) {
  for (const std::filesystem::path& file : read) {
    if (!is_same_file(file, path)) continue;
    throw UsageError(ErrorCode::bad_argument, "the output is a file that is read",
                     {.path = path.string()});
  }
}

void check_output_name(const std::filesystem::path& path, const OutputOptions& output) {
  struct stat status;
  // Any other error is left to the call that makes the file, which knows more about it.
  const bool is_there = ::lstat(path.c_str(), &status) == 0;
  if (!is_there && errno == ENAMETOOLONG) throw_errno("lstat", path);
  if (is_there && S_ISLNK(status.st_mode) && !output.follows_link() &&
      output.link != OutputLink::replaced && !is_descriptor_path(path))
    refuse_link(path);
  if (!output.replace && is_file(path)) fail_exists(path);
}

AtomicFile::AtomicFile(const std::filesystem::path& path, AtomicFileOptions options)
    : target_(target_of(path, options.output)),
      name_(target_.filename().string()),
      options_(std::move(options)) {
  if (name_.empty())
    throw UsageError(ErrorCode::bad_argument, "names no file", {.path = path.string()});
  fd_ = open_unnamed_again(target_);
  if (fd_) return;
  // Only the fsync of the folder needs the right to read it. Without one, O_PATH is enough.
  const int access = options_.output.durability == Durability::full ? O_RDONLY : O_PATH;
  folder_fd_ = open_beneath(options_.output.within, folder(), access | O_DIRECTORY);
  if (!folder_fd_) throw_errno("open", folder());

  // Never more open to others than the file it replaces, even while it is written.
  const auto replaced = stat_target(folder_fd_.get(), name_, target_, options_.output.link);
  if (replaced && !options_.output.replace) fail_exists(target_);
  const unsigned mode = replaced ? replaced->st_mode & 0777 : 0666;
  if (!options_.allow_unnamed || !open_unnamed(mode)) open_named(mode);
}

AtomicFile::~AtomicFile() {
  discard();
}

// temporary_ is exchanged rather than moved: a string that was moved from may hold anything, and
// both objects would remove the file.
AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : process_(other.process_),
      target_(std::move(other.target_)),
      name_(std::move(other.name_)),
      temporary_(std::exchange(other.temporary_, {})),
      options_(std::move(other.options_)),
      prepared_(other.prepared_),
      folder_fd_(std::move(other.folder_fd_)),
      fd_(std::move(other.fd_)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  process_ = other.process_;
  target_ = std::move(other.target_);
  name_ = std::move(other.name_);
  temporary_ = std::exchange(other.temporary_, {});
  options_ = std::move(other.options_);
  prepared_ = other.prepared_;
  folder_fd_ = std::move(other.folder_fd_);
  fd_ = std::move(other.fd_);
  return *this;
}

std::filesystem::path AtomicFile::folder() const {
  return target_.has_parent_path() ? target_.parent_path() : std::filesystem::path(".");
}

// False if the file system has no unnamed files, or if /proc, through which one gets its
// name, is not mounted.
bool AtomicFile::open_unnamed(unsigned mode) {
  fd_.reset(retry_interrupted(
      [&] { return ::openat(folder_fd_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode); }));
  if (!fd_) {
    // EISDIR from kernels that take O_TMPFILE for O_DIRECTORY.
    if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) return false;
    throw_errno("open with O_TMPFILE", folder());
  }
  if (::access(proc_path(fd_.get()).c_str(), F_OK) == 0) return true;
  fd_.reset();
  return false;
}

void AtomicFile::open_named(unsigned mode) {
  temporary_ = with_free_name(
      folder_fd_.get(), name_, target_, "open of the temporary", [&](const char* temporary) {
        fd_.reset(retry_interrupted([&] {
          return ::openat(folder_fd_.get(), temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);
        }));
        return bool(fd_);
      });
}

// The owner first, then the mode: fchown() clears the set-user-ID and set-group-ID bits.
void AtomicFile::take_over_owner_and_mode() {
  if (!folder_fd_) return;
  const auto replaced = stat_target(folder_fd_.get(), name_, target_, options_.output.link);
  if (!replaced) return;
  struct stat own;
  if (::fstat(fd_.get(), &own) != 0) throw_errno("fstat", target_);
  unsigned mode = replaced->st_mode & 07777;
  if (replaced->st_uid != own.st_uid || replaced->st_gid != own.st_gid) {
    // Only root gives files away, but a group of one's own may be set. Where either cannot be kept,
    // what its bits allowed must not pass to somebody else.
    if (!change_owner(fd_.get(), replaced->st_uid, replaced->st_gid, target_)) {
      mode &= 0777u;
      if (!change_owner(fd_.get(), static_cast<uid_t>(-1), replaced->st_gid, target_))
        mode &= 0707u | (mode & 07u) << 3;
    }
    if (::fstat(fd_.get(), &own) != 0) throw_errno("fstat", target_);
  }
  if ((own.st_mode & 07777) != mode && ::fchmod(fd_.get(), mode) != 0)
    throw_errno("fchmod", target_);
}

// True if the file has its name: there was none of that name. rename() replaces a file and
// linkat() does not, hence the detour over a temporary name if there was one.
bool AtomicFile::link_unnamed() {
  const std::string source = proc_path(fd_.get());
  const auto link_as = [&](const char* name) {
    return ::linkat(AT_FDCWD, source.c_str(), folder_fd_.get(), name, AT_SYMLINK_FOLLOW) == 0;
  };
  if (link_as(name_.c_str())) return true;
  if (errno != EEXIST) throw_errno("linkat", target_);
  if (!options_.output.replace) fail_exists(target_);
  temporary_ = with_free_name(folder_fd_.get(), name_, target_, "linkat", link_as);
  return false;
}

void AtomicFile::rename_temporary() {
  const int folder = folder_fd_.get();
  if (!options_.output.replace) {
    // A link is refused if the name is taken, on every file system; renameat2() is not on all.
    if (::linkat(folder, temporary_.c_str(), folder, name_.c_str(), 0) == 0) {
      ::unlinkat(folder, temporary_.c_str(), 0);
      return;
    }
    if (errno == EEXIST) fail_exists(target_);
    // File systems without hard links. The look at the name and the rename are two calls there.
    if (errno != EPERM && errno != EOPNOTSUPP) throw_errno("linkat", target_);
    if (stat_target(folder, name_, target_, OutputLink::refused)) fail_exists(target_);
  }
  if (::renameat(folder, temporary_.c_str(), folder, name_.c_str()) != 0)
    throw_errno("rename", target_);
}

void AtomicFile::require_own() const {
  process_.require("the file that is written", target_.native());
}

void AtomicFile::prepare() {
  require_own();
  try {
    take_over_owner_and_mode();
    prepared_ = true;
  } catch (...) {
    discard();
    throw;
  }
}

double AtomicFile::commit(bool synced) {
  if (!fd_)
    throw UsageError(ErrorCode::wrong_state, "the file was committed or discarded before",
                     {.path = target_.string()});
  require_own();
  double seconds = 0;
  try {
    if (!prepared_) take_over_owner_and_mode();
    if (!synced && options_.output.durability != Durability::none)
      seconds += sync_file(fd_.get(), options_.output.durability == Durability::full, target_);
    // The last look at the token: once the file has its name, nothing can be undone.
    stop_if_wanted(options_.cancel);
    if (!folder_fd_) {
      fd_.reset();
      return seconds;
    }
    const bool in_place = temporary_.empty() && link_unnamed();
    // Closed before the rename, because network file systems, which have no unnamed files, report
    // late write errors here. EINTR is not one: Linux closes all the same. A file that was linked
    // in place has its name already, so an error would come too late to undo anything.
    if (::close(fd_.release()) != 0 && errno != EINTR && !in_place) throw_errno("close", target_);
    // The old file vanishes in this call, and open readers keep it.
    if (!in_place) rename_temporary();
    temporary_.clear();
    if (options_.output.durability == Durability::full)
      seconds += sync_file(folder_fd_.get(), true, folder());
  } catch (...) {
    discard();
    throw;
  }
  folder_fd_.reset();
  return seconds;
}

void AtomicFile::discard() noexcept {
  if (!temporary_.empty() && process_.is_this())
    ::unlinkat(folder_fd_.get(), temporary_.c_str(), 0);
  temporary_.clear();
  fd_.reset();
  folder_fd_.reset();
}

}  // namespace thalia::io
