// Between any two steps a process may be killed, and another one may do the same. So a lock is
// taken before a folder gets a name that others may clear away, and after it is taken the folder is
// looked at again: its name may have gone to another save's since it was listed.
#include "io/folder/replaced_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "io/system/posix_error.h"
#include "io/system/process.h"
#include "thalia/files.h"

namespace thalia::io {
namespace {

using std::filesystem::path;
using Use = std::shared_ptr<FolderUse>;

constexpr std::string_view kSaving = ".saving", kOld = ".old";

// Also of what is not there.
path resolved(const path& folder) {
  return resolved_path(folder.has_filename() ? folder : folder.parent_path());
}

path beside(const path& folder, std::string_view ending) {
  return folder.parent_path() / fmt::format(".{}{}", folder.filename().native(), ending);
}

bool is_there(const path& name) {
  struct stat facts {};
  if (::lstat(name.c_str(), &facts) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw_errno("stat", name);
}

bool is_folder(const path& name) {
  std::error_code failed;
  return std::filesystem::is_directory(name, failed);
}

std::vector<std::string> names_in(const Folder& folder) {
  std::vector<std::string> names;
  for (FolderEntry& entry : folder.entries()) names.push_back(std::move(entry.name));
  return names;
}

// Another may do the same meanwhile.
void clear(const Folder& folder, const FolderContent& content,
           const std::function<bool(const std::string&)>& stays) {
  for (const std::string& name : names_in(folder))
    if (content.is_own(name) && !(stays && stays(name))) folder.remove(name);
}

// Files of others in it stay, and it with them.
void remove_folder(const path& name, const FolderContent& content) {
  if (const auto folder = Folder::find(name)) clear(*folder, content, {});
  ::rmdir(name.c_str());
}

// The locks of this process's saves, by the folder: one that failed is given up by the next save to
// the same one, also while somebody keeps it with the exception.
class OwnUses {
 public:
  void end(const path& target) {
    const std::lock_guard lock(mutex_);
    const auto found = uses_.find(target);
    if (found == uses_.end()) return;
    if (const Use use = found->second.lock()) use->end();
    uses_.erase(found);
  }
  void put(const path& target, const Use& use) {
    const std::lock_guard lock(mutex_);
    std::erase_if(uses_, [](const auto& one) { return one.second.expired(); });
    uses_[target] = use;
  }

 private:
  ThreadLock mutex_;
  std::map<path, std::weak_ptr<FolderUse>> uses_;
};

OwnUses& own_uses() {
  static OwnUses* const uses = new OwnUses;  // never destroyed: saves may end after main()
  return *uses;
}

void check_replaceable(const path& folder, bool replace, const FolderContent& content) {
  if (!is_there(folder)) return;
  std::vector<std::string> names{folder.filename().native()};
  if (is_folder(folder)) names = names_in(Folder(folder));
  std::optional<std::string> foreign;
  for (const std::string& name : names)
    if (!content.is_own(name) && (!foreign || name < *foreign)) foreign = name;
  if (!foreign && (names.empty() || replace)) return;
  throw UsageError(
      ErrorCode::exists,
      "it is there already, and not replaced: " +
          (foreign ? fmt::format("it holds '{}'; expected a folder for the checkpoint alone",
                                 printable(*foreign))
                   : std::string("replace=False")),
      {.path = folder.string()});
}

// Ends what a killed save did at this path, if that is what it is. `own` is to be free.
void clear_left(const path& at, const path& own, const FolderContent& content) {
  const std::string name = at.filename().native();
  const bool is_old = name.ends_with(kOld), is_saving = name.ends_with(kSaving);
  struct stat facts {};
  if (!name.starts_with('.') || (!is_old && !is_saving)) return;
  if (::lstat(at.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) return;
  const auto listed = Folder::find(at);
  if (!listed) return;  // its save has just removed it
  std::vector<std::string> names = names_in(*listed);
  if (!std::ranges::all_of(names, content.is_own)) return;
  const path folder =
      at.parent_path() / name.substr(1, name.size() - 1 - (is_old ? kOld : kSaving).size());
  // A save that has not put the new one in place yet does that next.
  if (is_old && is_there(beside(folder, kSaving))) return;
  // Perhaps made just now, and locked next.
  if (!is_old && at != own && names.empty()) return;
  Use use;
  try {
    use = FolderUse::take(at, false);
    if (!use && !listed->facts(content.failed)) return;
  } catch (const IoError&) {
    // Without locks nobody can tell whether a save to another folder is still going on.
    if (at != own && is_saving) return;
  }
  if (use) {
    names = names_in(use->folder());
    if (!use->is_at(at) || (!is_old && at != own && names.empty())) return;
  }
  if (is_old && std::ranges::find(names, content.whole) != names.end() && !is_there(folder)) {
    if (::rename(at.c_str(), folder.c_str()) != 0) throw_errno("rename", folder);
  } else {
    remove_folder(at, content);
  }
}

// Two names are exchanged at once. False where the file system cannot.
bool exchange(const path& a, const path& b) {
  if (::syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0)
    return true;
  if (errno == ENOSYS || errno == EINVAL || errno == EOPNOTSUPP) return false;
  throw_errno("rename", b);
}

}  // namespace

std::shared_ptr<FolderUse> FolderUse::take(const path& folder, bool wait) {
  Use use(new FolderUse(folder));
  const int how = LOCK_EX | (wait ? 0 : LOCK_NB);
  if (retry_interrupted([&] { return ::flock(use->folder_.fd(), how); }) == 0) return use;
  if (errno == EWOULDBLOCK) return nullptr;
  throw_errno("flock", folder);
}

bool FolderUse::is_at(const path& name) const {
  struct stat own {
  }, there{};
  if (::fstat(folder_.fd(), &own) != 0) throw_errno("stat", folder_.path());
  if (::lstat(name.c_str(), &there) != 0) {
    if (errno == ENOENT) return false;
    throw_errno("stat", name);
  }
  return own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

void FolderUse::end() noexcept {
  ::flock(folder_.fd(), LOCK_UN);
}

path saving_folder(const path& folder) {
  return beside(resolved(folder), kSaving);
}

path readable_folder(const path& folder) {
  if (is_there(folder)) return folder;
  const path old = beside(resolved(folder), kOld);
  return is_folder(old) ? old : folder;
}

std::shared_ptr<FolderUse> begin_folder(const path& to, bool replace,
                                        const FolderContent& content) {
  const path folder = resolved(to), parent = folder.parent_path();
  const path target = beside(folder, kSaving);
  make_folders(parent, Durability::full);
  own_uses().end(target);
  std::vector<std::string> names = names_in(Folder(parent));
  std::ranges::sort(names, std::greater());  // .X.saving before .X.old
  for (const std::string& name : names) clear_left(parent / name, target, content);
  check_replaceable(folder, replace, content);
  const auto in_use = [&] {
    return UsageError(ErrorCode::wrong_state,
                      fmt::format("another process saves to it, or {} is not a save's; expected "
                                  "neither",
                                  printable(target.string())),
                      {.path = folder.string()});
  };
  if (::mkdir(target.c_str(), 0777) != 0) {
    if (errno == EEXIST || errno == ENOENT) throw in_use();
    throw_errno("mkdir", target);
  }
  try {
    Use use = FolderUse::take(target, true);  // for another that just looks at it
    own_uses().put(target, use);
    return use;
  } catch (const IoError& error) {
    if (error.errno_value() == ENOENT) throw in_use();
    if (!is_folder(target)) throw;
    return nullptr;
  }
}

void give_up_folder(const path& folder, const FolderContent& content) noexcept {
  try {
    const path name = saving_folder(folder) / content.failed;
    const UniqueFd fd(::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
  } catch (const std::exception&) {
    // The lock's end says it too.
  }
}

bool rename_folder(const Folder& parent, const std::string& from, const std::string& to) {
  if (::renameat(parent.fd(), from.c_str(), parent.fd(), to.c_str()) == 0) return true;
  if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) return false;
  throw_errno("rename", parent.path() / to);
}

void publish_file(const Folder& folder, const std::string& from, const std::string& to,
                  const std::vector<std::string>& gone) {
  for (const std::string& name : gone) folder.remove(name);
  folder.sync();
  if (::renameat(folder.fd(), from.c_str(), folder.fd(), to.c_str()) != 0)
    throw_errno("rename", folder.path() / to);
  folder.sync();
}

void publish_folder(const path& to, Durability durability, const FolderContent& content) {
  const path folder = resolved(to), saved = beside(folder, kSaving);
  path gone = beside(folder, kOld);
  const Folder parent(folder.parent_path());
  if (durability == Durability::full) Folder(saved).sync();
  // What goes is locked before it has a name that others may clear away: else this save and another
  // one would remove it, the other one late, and of the next save's folder.
  Use going;
  try {
    going = FolderUse::take(folder, false);
  } catch (const IoError&) {
    // It is not there, or there are no locks.
  }
  if (!rename_folder(parent, saved.filename().native(), folder.filename().native())) {
    if (!is_folder(folder)) throw_errno("rename", folder, {}, ENOTDIR);
    if (content.exchanges && exchange(saved, folder)) {
      gone = saved;
    } else {
      // Not at once; what a kill between leaves, begin_folder() and readable_folder() find.
      if (::rename(folder.c_str(), gone.c_str()) != 0) throw_errno("rename", gone);
      if (::rename(saved.c_str(), folder.c_str()) != 0) throw_errno("rename", folder);
    }
  }
  if (durability == Durability::full) parent.sync();
  remove_folder(gone, content);
}

void clear_folder(const path& folder, const FolderContent& content,
                  const std::function<bool(const std::string& name)>& stays) {
  clear(Folder(folder), content, stays);
}

}  // namespace thalia::io
