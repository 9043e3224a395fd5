// Storage: where checkpoints are kept under keys, whatever keeps them.
//
//   const auto storage = thalia::open_storage("local:///var/checkpoints");
//   storage->put("run/step_1000", bytes);
//   const thalia::StoredBytes stored = storage->view("run/step_1000");
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/detail/once.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia {

/// Takes bytes piece by piece; each piece is valid during the call only.
using ByteSink = std::function<void(ByteSpan piece)>;
/// Hands all of an object's bytes to a sink, in order.
using ByteProducer = std::function<void(const ByteSink& sink)>;

/// An object's bytes, valid for as long as any copy of this lives.
struct StoredBytes {
  ByteSpan bytes;
  std::shared_ptr<const void> owner;
};

/// A key names an object: names joined by '/', each 1 to 255 bytes that do not begin with '.' and
/// hold no NUL, 1,024 bytes in all. So no key leads out of a folder, or to a temporary file in it.
/// @throws UsageError (bad_argument) for what is no key.
void check_storage_key(std::string_view key);

/// Objects under keys. Implementations can be called by any number of threads at once. Every
/// function throws UsageError (bad_argument) for what is no key, and StorageError with operation,
/// key and errno where the storage fails: ENOENT if there is no such object.
class StorageBackend {
 public:
  StorageBackend() = default;
  virtual ~StorageBackend() = default;
  StorageBackend(const StorageBackend&) = delete;
  StorageBackend& operator=(const StorageBackend&) = delete;

  /// Puts an object in place of the one of that key, if there is one. Readers see the old object or
  /// the whole new one; after an exception, one of `produce` too, the old one.
  virtual void put_stream(std::string_view key, const ByteProducer& produce) = 0;
  /// Bytes of the object.
  virtual std::uint64_t size(std::string_view key) const = 0;
  /// Fills `out` from byte `offset` on. @throws UsageError (bad_argument) where the object has
  /// less.
  virtual void get_range(std::string_view key, std::uint64_t offset, MutableByteSpan out) const = 0;
  /// @return false if there was none.
  virtual bool erase(std::string_view key) = 0;
  virtual bool exists(std::string_view key) const = 0;
  /// Keys that begin with `prefix`, any text, in ascending order of their bytes.
  virtual std::vector<std::string> list(std::string_view prefix = {}) const = 0;
  /// The whole object, as it is now, in place where the storage can. This one copies it with size()
  /// and get_range(); a storage in which an object may be replaced between the two overrides it.
  virtual StoredBytes view(std::string_view key) const;

  void put(std::string_view key, ByteSpan bytes);
  /// A copy of view().
  std::vector<std::byte> get(std::string_view key) const;
};

/// A folder and what is below it: the object of key a/b is the file b in the folder a. A put writes
/// a temporary file, syncs it, renames it and syncs the folder. The first put into a folder also
/// syncs the names of that folder and of those above it, up to the storage's own, whichever process
/// made them: a folder that another process removes and makes again later is not synced twice.
/// Symbolic links that stay in the folder are followed; a key whose path leads out of it through a
/// link is refused. list() does not follow them from a folder to one that it lies in, which has no
/// end. A key cannot be a folder of another one.
class LocalStorage final : public StorageBackend {
 public:
  /// `folder` need not be there yet: the first put makes it.
  explicit LocalStorage(std::filesystem::path folder, const OutputOptions& output = {});

  const std::filesystem::path& folder() const noexcept { return folder_; }
  /// Where the object of a key lies. @throws UsageError (bad_argument).
  std::filesystem::path path_of(std::string_view key) const;

  void put_stream(std::string_view key, const ByteProducer& produce) override;
  std::uint64_t size(std::string_view key) const override;
  void get_range(std::string_view key, std::uint64_t offset, MutableByteSpan out) const override;
  bool erase(std::string_view key) override;
  bool exists(std::string_view key) const override;
  std::vector<std::string> list(std::string_view prefix = {}) const override;
  /// Mapped: nothing is read before it is touched. A later put or erase leaves it as it is.
  StoredBytes view(std::string_view key) const override;

 private:
  void put_on_disk(const std::filesystem::path& folder);
  std::filesystem::path new_object_path(std::string_view key);

  std::filesystem::path folder_;
  OutputOptions output_;
  detail::ThreadLock mutex_;
  std::set<std::filesystem::path> synced_;  ///< folders whose names are on the disk
};

/// Objects in memory, gone with the storage but for those that are viewed.
class MemoryStorage final : public StorageBackend {
 public:
  void put_stream(std::string_view key, const ByteProducer& produce) override;
  std::uint64_t size(std::string_view key) const override;
  void get_range(std::string_view key, std::uint64_t offset, MutableByteSpan out) const override;
  bool erase(std::string_view key) override;
  bool exists(std::string_view key) const override;
  std::vector<std::string> list(std::string_view prefix = {}) const override;
  StoredBytes view(std::string_view key) const override;

 private:
  using Object = std::shared_ptr<const std::vector<std::byte>>;
  Object find(std::string_view operation, std::string_view key) const;

  mutable detail::ThreadLock mutex_;
  std::map<std::string, Object, std::less<>> objects_;
};

/// "local:///absolute/path" is a LocalStorage, the path taken as it is; "mem://" a new
/// MemoryStorage. @throws UsageError (bad_argument) for a path that is not absolute or something
/// that is no URI; UnsupportedError for another scheme.
std::shared_ptr<StorageBackend> open_storage(std::string_view uri);

}  // namespace thalia
