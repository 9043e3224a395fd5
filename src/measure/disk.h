// What a disk can do with the same bytes, and the state that a measurement finds it in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>

#include "thalia/types.h"

namespace thalia::measure {

/// A new folder, removed with all in it at the end of the scope.
class ScratchFolder {
 public:
  /// @throws IoError naming `parent`.
  explicit ScratchFolder(const std::filesystem::path& parent);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Whether the folder's file system lets files be opened past the page cache.
bool allows_direct(const std::filesystem::path& folder);

/// A new file of these bytes: past the page cache where `direct`, 16 writes of 4 MiB at a time into
/// reserved space, then fsync. Past the cache, bytes starts on a page and has whole 4 KiB.
/// @throws IoError with the offset; CancelledError.
void write_raw(const std::filesystem::path& path, ByteSpan bytes, bool direct,
               const std::stop_token& stop = {});
/// Reads a file's first out.size() bytes in the same way. @throws as write_raw().
void read_raw(const std::filesystem::path& path, MutableByteSpan out, bool direct,
              const std::stop_token& stop = {});

/// Writes the file to the disk and drops its pages from the page cache. Nothing may have it mapped.
/// @return how many pages stay, as those of a file system in memory do.
/// @throws IoError
std::size_t drop_from_cache(const std::filesystem::path& path);
/// Leaves `bytes` of free memory as the page cache of this folder's file system uses it, touched a
/// moment ago. A virtual machine gives free pages back to its host, and copying into such pages is
/// ten times as slow: without this, what runs second, in the pages that the first has left,
/// would seem faster.
/// @throws IoError
void touch_free_memory(const std::filesystem::path& folder, std::uint64_t bytes);
/// Waits until everything written to that file system is on the disk. @throws IoError
void settle(const std::filesystem::path& folder);

/// @throws CancelledError where a stop was requested.
void throw_if_stopped(const std::stop_token& stop);

}  // namespace thalia::measure
