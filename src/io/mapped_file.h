// A regular file mapped read-only and shared for its whole length at the time of opening.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

#include "io/unique_fd.h"
#include "thalia/bytes.h"

namespace thalia::io {

enum class Advice { will_need, dont_need, sequential, random };

/// Immutable; any number of threads. Unmapped with the last shared_ptr. Whoever shortens the file
/// meanwhile makes touching the lost pages fatal (SIGBUS); AtomicFile never does, it replaces.
class MappedFile {
 public:
  /// An empty file maps to an empty span. @throws IoError; UsageError (bad_argument) where the path
  /// is no regular file.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  ByteSpan bytes() const noexcept { return bytes_; }
  const std::filesystem::path& path() const noexcept { return path_; }
  /// Open for reading: the file that is mapped, whatever its path names by now.
  int fd() const noexcept { return fd_.get(); }
  /// Best effort, for the pages that the extent touches; for dont_need only pages wholly inside it.
  void advise(std::uint64_t offset, std::uint64_t length, Advice advice) const noexcept;
  /// Bytes of this mapping that are in the process's page tables (Rss in /proc/self/smaps); 0 where
  /// that is not to be had.
  std::uint64_t resident_bytes() const;

 private:
  explicit MappedFile(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
  UniqueFd fd_;
  ByteSpan bytes_;
};

}  // namespace thalia::io
