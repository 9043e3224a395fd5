// Objects are immutable: a put makes a new one and exchanges the pointer under the mutex, which is
// held for nothing but the look into the map. Copies and producers run without it. So a view stays
// as it was through a later put or erase, and producers may use the storage.
#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "base/fail.h"
#include "base/steps.h"
#include "base/utf8.h"
#include "thalia/storage.h"

namespace thalia {

MemoryStorage::Object MemoryStorage::find(std::string_view operation, std::string_view key) const {
  check_storage_key(key);
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    throw StorageError(operation, std::string(key), ENOENT,
                       {.field = "key", .value = printable(key)});
  }
  return found->second;
}

void MemoryStorage::put_stream(std::string_view key, const ByteProducer& produce) {
  check_storage_key(key);
  std::vector<std::byte> bytes;
  // A producer that swallows an exception of the sink must not get an object with a hole put in
  // place.
  Steps steps("the object");
  produce([&](ByteSpan piece) {
    steps.run([&] { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
  });
  steps.finish([&] { bytes.shrink_to_fit(); });
  Object object = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::lock_guard lock(mutex_);
  objects_.insert_or_assign(std::string(key), std::move(object));
}

std::uint64_t MemoryStorage::size(std::string_view key) const {
  return find("size", key)->size();
}

void MemoryStorage::get_range(std::string_view key, std::uint64_t offset,
                              MutableByteSpan out) const {
  const Object object = find("get", key);
  if (offset > object->size() || out.size() > object->size() - offset) {
    fail_argument(ErrorCode::bad_argument, "offset",
                  fmt::format("{} bytes at {}", out.size(), offset),
                  fmt::format("within {} bytes", object->size()));
  }
  std::copy_n(object->begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
}

bool MemoryStorage::erase(std::string_view key) {
  check_storage_key(key);
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return false;
  objects_.erase(found);
  return true;
}

bool MemoryStorage::exists(std::string_view key) const {
  check_storage_key(key);
  const std::lock_guard lock(mutex_);
  return objects_.contains(key);
}

std::vector<std::string> MemoryStorage::list(std::string_view prefix) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> keys;
  // Keys with one prefix are neighbours in a sorted map.
  for (auto at = objects_.lower_bound(prefix); at != objects_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    keys.push_back(at->first);
  }
  return keys;
}

StoredBytes MemoryStorage::view(std::string_view key) const {
  const Object object = find("get", key);
  return {.bytes = *object, .owner = object};
}

}  // namespace thalia
