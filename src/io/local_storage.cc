#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "io/atomic_file.h"
#include "io/gathered_writer.h"
#include "io/mapped_file.h"
#include "io/posix_error.h"
#include "io/posix_file.h"
#include "thalia/error.h"
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

// Each new folder's entry is synced too: else the file could be lost with its folder.
void create_folders(const std::filesystem::path& folder, Durability durability) {
  if (folder.empty() || ::access(folder.c_str(), F_OK) == 0) return;
  const std::filesystem::path parent = folder.parent_path();
  if (parent != folder) create_folders(parent, durability);
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) io::throw_errno("mkdir", folder);
  if (durability == Durability::full) sync_folder(parent.empty() ? "." : parent);
}

}  // namespace

LocalStorage::LocalStorage(std::filesystem::path folder, Durability durability)
    : folder_(std::move(folder)), durability_(durability) {}

std::filesystem::path LocalStorage::path_of(std::string_view key) const {
  check_storage_key(key);
  return folder_ / key;
}

void LocalStorage::put_stream(std::string_view key, const ByteProducer& produce) {
  const std::filesystem::path path = path_of(key);
  std::optional<io::AtomicFile> file;
  for_key("put", key, [&] {
    create_folders(path.parent_path(), durability_);
    file.emplace(path, io::AtomicFileOptions{.durability = durability_});
  });
  io::GatheredWriter writer(file->fd(), path);
  produce([&](ByteSpan piece) { for_key("put", key, [&] { writer.write(piece); }); });
  for_key("put", key, [&] {
    writer.flush();
    file->commit();
  });
}

std::uint64_t LocalStorage::size(std::string_view key) const {
  const std::filesystem::path path = path_of(key);
  return for_key("size", key,
                 [&] { return io::file_size(io::open_for_reading(path).get(), path); });
}

void LocalStorage::get_range(std::string_view key, std::uint64_t offset,
                             MutableByteSpan out) const {
  const std::filesystem::path path = path_of(key);
  for_key("get", key, [&] {
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
    if (::unlink(path.c_str()) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return false;
      io::throw_errno("unlink", path);
    }
    if (durability_ == Durability::full) sync_folder(path.parent_path());
    return true;
  });
}

bool LocalStorage::exists(std::string_view key) const {
  const std::filesystem::path path = path_of(key);
  return for_key("exists", key, [&] {
    struct stat status;
    if (::stat(path.c_str(), &status) == 0) return S_ISREG(status.st_mode);
    if (errno != ENOENT && errno != ENOTDIR) io::throw_errno("stat", path);
    return false;
  });
}

std::vector<std::string> LocalStorage::list(std::string_view prefix) const {
  return for_key("list", prefix, [&] {
    std::vector<std::string> keys;
    std::error_code error;
    std::filesystem::recursive_directory_iterator at(folder_, error), end;
    if (error == std::errc::no_such_file_or_directory) return keys;
    while (!error && at != end) {
      const bool hidden = at->path().filename().native().starts_with('.');
      if (hidden) at.disable_recursion_pending();
      std::error_code gone;  // a file that was erased meanwhile is none
      if (!hidden && at->is_regular_file(gone)) {
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
  const std::filesystem::path path = path_of(key);
  return for_key("get", key, [&] {
    const auto file = io::MappedFile::open(path);
    return StoredBytes{.bytes = file->bytes(), .owner = file};
  });
}

}  // namespace thalia
