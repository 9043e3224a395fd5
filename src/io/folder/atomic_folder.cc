// The folder gets its name by one rename, after its files and folders are on the disk as far as the
// durability says. What it made it knows by name, so nothing else is ever removed.
#include "io/folder/atomic_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "io/file/posix_file.h"
#include "io/folder/replaced_folder.h"
#include "io/output/temporary_file.h"
#include "io/path/real_path.h"
#include "io/system/posix_error.h"
#include "thalia/files.h"

namespace thalia::io {
namespace {

constexpr std::size_t kGathered = 1 << 20;
// Between two looks for a stop: a piece may be a tensor of many GiB.
constexpr std::size_t kUnstopped = 8 << 20;

[[noreturn]] void fail_found(const std::filesystem::path& path, std::string_view value) {
  throw UsageError(ErrorCode::bad_argument, {},
                   {.path = path.string(),
                    .value = std::string(value),
                    .bound = "none, or an empty folder: nothing else is replaced"});
}

// Pieces are gathered, so that many small ones are few calls.
class Gathered {
 public:
  Gathered(int fd, const std::filesystem::path& path) : fd_(fd), path_(path) {}
  void append(ByteSpan piece) {
    if (held_.size() + piece.size() > kGathered) flush();
    if (piece.size() > kGathered) {
      put(piece);
    } else {
      held_.insert(held_.end(), piece.begin(), piece.end());
    }
  }
  void flush() {
    put(held_);
    held_.clear();
  }
  std::uint64_t size() const noexcept { return written_; }

 private:
  void put(ByteSpan bytes) {
    pwrite_all(fd_, written_, bytes, path_);
    written_ += bytes.size();
  }
  int fd_;
  const std::filesystem::path& path_;
  std::vector<std::byte> held_;
  std::uint64_t written_ = 0;
};

}  // namespace

AtomicFolder::AtomicFolder(const std::filesystem::path& path, const OutputOptions& output,
                           const std::stop_token& cancel)
    : target_(real_path(path.has_filename() ? path : path.parent_path())),
      output_(output),
      cancel_(cancel),
      parent_(folder_of(target_)) {
  const std::string name = target_.filename().native();
  if (const auto facts = parent_.facts(name)) {
    if (facts->kind != EntryKind::folder) fail_found(target_, "a file");
    if (!Folder(target_).entries().empty()) fail_found(target_, "a folder that is not empty");
    if (!output_.replace)
      throw UsageError(ErrorCode::exists, "a folder is there already", {.path = target_.string()});
  }
  temporary_ = with_free_name(parent_.fd(), name, target_, "mkdir", [&](const char* free) {
    return ::mkdirat(parent_.fd(), free, 0777) == 0;
  });
}

AtomicFolder::~AtomicFolder() {
  discard();
}

void AtomicFolder::discard() noexcept {
  if (temporary_.empty() || !process_.is_this()) return;
  for (const std::string& file : files_) ::unlinkat(parent_.fd(), file.c_str(), 0);
  // The longer of two paths follows the one that it begins with.
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder)
    ::unlinkat(parent_.fd(), folder->c_str(), AT_REMOVEDIR);
  ::unlinkat(parent_.fd(), temporary_.c_str(), AT_REMOVEDIR);
  temporary_.clear();
}

void AtomicFolder::make_inner_folder(const std::string& name) {
  if (made_.contains(name)) return;
  if (::mkdirat(parent_.fd(), name.c_str(), 0777) != 0) throw_errno("mkdir", parent_.path() / name);
  made_.insert(name);
}

void AtomicFolder::write_file(std::span<const std::string> names, const ByteProducer& produce) {
  process_.require("the folder that is written", target_.native());
  std::string name = temporary_;
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    name += '/' + names[i];
    make_inner_folder(name);
  }
  name += '/' + names.back();
  const std::filesystem::path path = parent_.path() / name;
  const UniqueFd fd(retry_interrupted([&] {
    return ::openat(parent_.fd(), name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
  }));
  if (!fd) throw_errno("open", path);
  files_.push_back(name);
  Gathered gathered(fd.get(), path);
  produce([&](ByteSpan piece) {
    do {
      stop_if_cancelled(cancel_);
      const ByteSpan part = piece.first(std::min(piece.size(), kUnstopped));
      piece = piece.subspan(part.size());
      gathered.append(part);
    } while (!piece.empty());
  });
  gathered.flush();
  bytes_ += gathered.size();
  if (output_.durability != Durability::none) sync_file(fd.get(), false, path);
}

void AtomicFolder::commit() {
  process_.require("the folder that is written", target_.native());
  stop_if_cancelled(cancel_);
  if (output_.durability != Durability::none) {
    for (const std::string& folder : made_) Folder(parent_.path() / folder).sync();
    Folder(parent_.path() / temporary_).sync();
  }
  const std::string name = target_.filename().native();
  // Replaces an empty folder and nothing else.
  if (!rename_folder(parent_, temporary_, name)) {
    const bool folder = parent_.facts(name).value_or(EntryFacts{}).kind == EntryKind::folder;
    fail_found(target_, folder ? "a folder that is not empty" : "a file");
  }
  temporary_.clear();
  if (output_.durability == Durability::full) parent_.sync();
}

}  // namespace thalia::io
