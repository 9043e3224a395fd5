// Objects as files below a folder. A put is a commit (docs/format/writing.md, "Commit"), so a
// reader of a key sees the old object or the whole new one, and no locks are needed between threads
// or processes: each call resolves its key anew. What is kept is only which folders' names were
// synced.
//
// No key leads out of the folder. check_storage_key() refuses `..` and hidden names; inside()
// refuses what links would do. The check and the use are two steps: who can change links in the
// folder while a call runs is trusted.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "io/file/mapped_file.h"
#include "io/file/posix_file.h"
#include "io/folder/folder.h"
#include "io/path/real_path.h"
#include "io/system/posix_error.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/storage.h"

namespace thalia {
namespace {

// Errors of the operating system become errors of the key. What a producer throws must not pass
// through here: a producer reads files of its own, and their errors are not the key's.
template <typename Call>
auto for_key(std::string_view operation, std::string_view key, const Call& call) {
  try {
    return call();
  } catch (const IoError& error) {
    throw StorageError(operation, std::string(key), error.errno_value(), error.context());
  }
}

[[noreturn]] void fail_folder(std::string_view operation, const std::filesystem::path& path,
                              const std::error_code& error) {
  throw IoError(operation, error.value(), {.path = path.string()});
}

// The path with links resolved, which must lie in the storage's folder. Otherwise the error is the
// one of an illegal key.
std::filesystem::path inside(const std::filesystem::path& root, const std::filesystem::path& path,
                             std::string_view key) {
  std::filesystem::path real = io::real_path(path);
  if (io::lies_in(real, root)) return real;
  fail_argument(ErrorCode::bad_argument, "key", "'" + printable(key) + "'",
                "no link out of the storage's folder", "not a key");
}

std::filesystem::path object_path(const LocalStorage& storage, std::string_view key) {
  return inside(io::real_path(storage.folder()), storage.path_of(key), key);
}

// ENOTDIR: a name within the key is a file, so there is nothing below it.
bool is_absent(const IoError& error) {
  return error.errno_value() == ENOENT || error.errno_value() == ENOTDIR;
}

// Where an entry of a folder inside leads, if that is inside too: nullopt also for one that was
// erased since the folder was read, which is no error.
std::optional<std::filesystem::path> where_inside(const std::filesystem::path& root,
                                                  const std::filesystem::path& real_folder,
                                                  const std::filesystem::directory_entry& entry) {
  std::error_code gone;
  if (!entry.is_symlink(gone)) return real_folder / entry.path().filename();
  try {
    std::filesystem::path real = io::real_path(entry.path());
    return io::lies_in(real, root) ? std::optional(std::move(real)) : std::nullopt;
  } catch (const IoError& error) {
    if (io::is_out_of_resources(error)) throw;
    return std::nullopt;
  }
}

bool is_key(std::string_view text) {
  try {
    check_storage_key(text);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

}  // namespace

LocalStorage::LocalStorage(std::filesystem::path folder, const OutputOptions& output)
    : folder_(std::move(folder)), output_(output) {}

// Two threads may sync one folder, which is no harm.
void LocalStorage::put_on_disk(const std::filesystem::path& folder) {
  if (output_.durability != Durability::full) return;
  {
    const std::lock_guard lock(mutex_);
    if (synced_.contains(folder)) return;
  }
  io::sync_name(folder);
  const std::lock_guard lock(mutex_);
  synced_.insert(folder);
}

// The path of an object to be put. Folders are made and checked one name at a time, so that none is
// made beyond a link that leads out of the storage.
std::filesystem::path LocalStorage::new_object_path(std::string_view key) {
  io::make_folders(folder_, output_.durability);
  const std::filesystem::path root = io::real_path(folder_);
  put_on_disk(root);
  const std::filesystem::path names(key);
  std::filesystem::path folder = root;
  for (const std::filesystem::path& name : names.parent_path()) {
    folder = inside(root, folder / name, key);
    if (!io::make_folder(folder, output_.durability)) put_on_disk(folder);
  }
  return inside(root, folder / names.filename(), key);
}

std::filesystem::path LocalStorage::path_of(std::string_view key) const {
  check_storage_key(key);
  return folder_ / key;
}

void LocalStorage::put_stream(std::string_view key, const ByteProducer& produce) {
  check_storage_key(key);
  OutputFile file = for_key("put", key, [&] { return OutputFile(new_object_path(key), output_); });
  // When the producer throws, `file` goes without a commit: the old object stays.
  produce([&](ByteSpan piece) { for_key("put", key, [&] { file.write(piece); }); });
  for_key("put", key, [&] { file.commit(); });
}

std::uint64_t LocalStorage::size(std::string_view key) const {
  return for_key("size", key, [&] {
    const std::filesystem::path path = object_path(*this, key);
    return io::file_size(io::open_for_reading(path).get(), path);
  });
}

void LocalStorage::get_range(std::string_view key, std::uint64_t offset,
                             MutableByteSpan out) const {
  for_key("get", key, [&] {
    const std::filesystem::path path = object_path(*this, key);
    const io::UniqueFd fd = io::open_for_reading(path);
    const std::uint64_t size = io::file_size(fd.get(), path);
    if (offset > size || out.size() > size - offset) {
      fail_argument(ErrorCode::bad_argument, "offset",
                    fmt::format("{} bytes at {}", out.size(), offset),
                    fmt::format("within {} bytes", size));
    }
    io::pread_all(fd.get(), offset, out, path);
  });
}

bool LocalStorage::erase(std::string_view key) {
  const std::filesystem::path path = path_of(key);
  return for_key("erase", key, [&] {
    try {
      // A link is erased itself, not the file that it leads to. So only its folder has to be
      // inside.
      const std::filesystem::path folder = inside(io::real_path(folder_), path.parent_path(), key);
      const std::filesystem::path real = folder / path.filename();
      if (::unlink(real.c_str()) != 0) io::throw_errno("unlink", path);
      if (output_.durability == Durability::full) io::Folder(folder).sync();
      return true;
    } catch (const IoError& error) {
      if (is_absent(error)) return false;
      throw;
    }
  });
}

bool LocalStorage::exists(std::string_view key) const {
  const std::filesystem::path path = path_of(key);
  return for_key("exists", key, [&] {
    try {
      struct stat status;
      if (::stat(object_path(*this, key).c_str(), &status) != 0) io::throw_errno("stat", path);
      return S_ISREG(status.st_mode);
    } catch (const IoError& error) {
      if (is_absent(error)) return false;
      throw;
    }
  });
}

std::vector<std::string> LocalStorage::list(std::string_view prefix) const {
  return for_key("list", prefix, [&] {
    std::vector<std::string> keys;
    std::error_code error, gone;
    std::filesystem::recursive_directory_iterator at(
        folder_, std::filesystem::directory_options::follow_directory_symlink, error);
    const std::filesystem::recursive_directory_iterator end;
    if (error == std::errc::no_such_file_or_directory) return keys;
    // The folders that the walk is in, links resolved, from the storage's on.
    std::vector<std::filesystem::path> within{io::real_path(folder_)};
    while (!error && at != end) {
      within.resize(static_cast<std::size_t>(at.depth()) + 1);
      std::string key = at->path().lexically_relative(folder_).string();
      // Hidden names are temporary files of puts, or nothing of ours.
      const auto real =
          is_key(key) ? where_inside(within.front(), within.back(), *at) : std::nullopt;
      // A link may lead to a folder that it lies in. So none is entered that the walk is in.
      if (real && at->is_directory(gone) && std::ranges::find(within, *real) == within.end()) {
        within.push_back(*real);
      } else {
        at.disable_recursion_pending();
      }
      if (real && at->is_regular_file(gone) && key.starts_with(prefix))
        keys.push_back(std::move(key));
      at.increment(error);
    }
    if (error) fail_folder("readdir", folder_, error);
    std::sort(keys.begin(), keys.end());
    return keys;
  });
}

StoredBytes LocalStorage::view(std::string_view key) const {
  return for_key("get", key, [&] {
    const auto file = io::MappedFile::open(object_path(*this, key));
    return StoredBytes{.bytes = file->bytes(), .owner = file};
  });
}

}  // namespace thalia
