#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "io/mapped_file.h"
#include "io/posix_error.h"
#include "io/posix_file.h"
#include "io/real_path.h"
#include "thalia/error.h"
#include "thalia/output_file.h"
#include "thalia/storage.h"

namespace thalia {
namespace {

// What the operating system refuses becomes the key's error; what a producer throws must not pass
// through here, as that has errors of its own.
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

void sync_folder(const std::filesystem::path& folder) {
  const io::UniqueFd fd(io::retry_interrupted(
      [&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!fd) io::throw_errno("open", folder);
  io::sync_file(fd.get(), true, folder);
}

// Its entry is synced too: else a file could be lost with its folder.
void create_folder(const std::filesystem::path& folder, Durability durability) {
  if (::mkdir(folder.c_str(), 0777) != 0) {
    if (errno != EEXIST) io::throw_errno("mkdir", folder);
    return;
  }
  const std::filesystem::path parent = folder.parent_path();
  if (durability == Durability::full) sync_folder(parent.empty() ? "." : parent);
}

void create_folders(const std::filesystem::path& folder, Durability durability) {
  if (folder.empty() || ::access(folder.c_str(), F_OK) == 0) return;
  const std::filesystem::path parent = folder.parent_path();
  if (parent != folder) create_folders(parent, durability);
  create_folder(folder, durability);
}

// `path` once links are followed. A key that is refused looks as if it had not been one.
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

// The same of what is to be put. Folders are made one by one: none is made through a link that
// leads out.
std::filesystem::path new_object_path(const LocalStorage& storage, std::string_view key,
                                      Durability durability) {
  create_folders(storage.folder(), durability);
  const std::filesystem::path root = io::real_path(storage.folder());
  const std::filesystem::path names(key);
  std::filesystem::path folder = root;
  for (const std::filesystem::path& name : names.parent_path()) {
    folder = inside(root, folder / name, key);
    create_folder(folder, durability);
  }
  return inside(root, folder / names.filename(), key);
}

bool is_absent(const IoError& error) {
  return error.errno_value() == ENOENT || error.errno_value() == ENOTDIR;
}

// A file that was erased meanwhile is none.
bool is_object(const std::filesystem::path& root, const std::filesystem::directory_entry& entry) {
  std::error_code gone;
  if (!entry.is_regular_file(gone)) return false;
  if (!entry.is_symlink(gone)) return true;
  try {
    return io::lies_in(io::real_path(entry.path()), root);
  } catch (const IoError&) {
    return false;
  }
}

}  // namespace

LocalStorage::LocalStorage(std::filesystem::path folder, Durability durability)
    : folder_(std::move(folder)), durability_(durability) {}

std::filesystem::path LocalStorage::path_of(std::string_view key) const {
  check_storage_key(key);
  return folder_ / key;
}

void LocalStorage::put_stream(std::string_view key, const ByteProducer& produce) {
  check_storage_key(key);
  OutputFile file = for_key("put", key, [&] {
    return OutputFile(new_object_path(*this, key, durability_), {.durability = durability_});
  });
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
      // Of a link the link goes: what counts is where its folder is.
      const std::filesystem::path folder = inside(io::real_path(folder_), path.parent_path(), key);
      const std::filesystem::path real = folder / path.filename();
      if (::unlink(real.c_str()) != 0) io::throw_errno("unlink", path);
      if (durability_ == Durability::full) sync_folder(folder);
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
    std::error_code error;
    std::filesystem::recursive_directory_iterator at(folder_, error), end;
    if (error == std::errc::no_such_file_or_directory) return keys;
    const std::filesystem::path root = io::real_path(folder_);
    while (!error && at != end) {
      const bool hidden = at->path().filename().native().starts_with('.');
      if (hidden) at.disable_recursion_pending();
      if (!hidden && is_object(root, *at)) {
        std::string key = at->path().lexically_relative(folder_).string();
        if (key.starts_with(prefix)) keys.push_back(std::move(key));
      }
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
