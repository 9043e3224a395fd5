// The rules of keys, and what all storages share. Keys are restricted so far that each of them is a
// legal relative path on every file system: LocalStorage can take them as they are, and one storage
// can be copied into another.
#include "thalia/storage.h"

#include <algorithm>
#include <string>

#include "base/fail.h"
#include "base/utf8.h"

namespace thalia {
namespace {

constexpr std::size_t kMaxKeyBytes = 1024;
constexpr std::size_t kMaxNameBytes = 255;

[[noreturn]] void refuse_key(std::string_view key, std::string_view bound) {
  fail_argument(ErrorCode::bad_argument, "key", "'" + printable(key) + "'", std::string(bound),
                "not a key");
}

}  // namespace

void check_storage_key(std::string_view key) {
  if (key.empty()) refuse_key(key, "at least one byte");
  if (key.size() > kMaxKeyBytes) refuse_key(key, "at most 1,024 bytes");
  if (key.find('\0') != std::string_view::npos) refuse_key(key, "no NUL");
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view name = key.substr(begin, end - begin);
    if (name.empty()) refuse_key(key, "names joined by single '/'");
    // Also excludes `.` and `..`, which would leave the folder, and names of temporary files.
    if (name.front() == '.') refuse_key(key, "no name that begins with '.'");
    if (name.size() > kMaxNameBytes) refuse_key(key, "names of at most 255 bytes");
    begin = end + 1;
  }
}

// Two calls, so an object could change between them: storages that know better override this.
StoredBytes StorageBackend::view(std::string_view key) const {
  auto bytes = std::make_shared<std::vector<std::byte>>(size(key));
  get_range(key, 0, *bytes);
  return {.bytes = *bytes, .owner = bytes};
}

void StorageBackend::put(std::string_view key, ByteSpan bytes) {
  put_stream(key, [&](const ByteSink& sink) { sink(bytes); });
}

std::vector<std::byte> StorageBackend::get(std::string_view key) const {
  const StoredBytes stored = view(key);
  return {stored.bytes.begin(), stored.bytes.end()};
}

std::shared_ptr<StorageBackend> open_storage(std::string_view uri) {
  constexpr std::string_view kLocal = "local://";
  if (uri == "mem://") return std::make_shared<MemoryStorage>();
  if (uri.starts_with(kLocal)) {
    const std::string_view path = uri.substr(kLocal.size());
    // A relative path would depend on the working directory at the time of the first put.
    if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) {
      fail_argument(ErrorCode::bad_argument, "uri", printable(uri), "local:///absolute/path");
    }
    return std::make_shared<LocalStorage>(std::filesystem::path(path));
  }
  if (uri.find("://") == std::string_view::npos) {
    fail_argument(ErrorCode::bad_argument, "uri", printable(uri), "local:///path or mem://");
  }
  throw UnsupportedError(
      ErrorCode::unsupported_feature, "this version has no such storage",
      {.field = "uri", .value = printable(uri), .bound = "local:///path or mem://"});
}

}  // namespace thalia
