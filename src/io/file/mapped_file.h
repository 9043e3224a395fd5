// A regular file mapped for its whole length at the time of opening: read-only and shared, or
// writable and private.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

#include "io/file/file_bytes.h"

namespace thalia::io {

/// Immutable; any number of threads. Unmapped with the last shared_ptr. Anybody who shortens the
/// file meanwhile makes touching the lost pages fatal (SIGBUS); AtomicFile never does, it replaces.
class MappedFile final : public FileBytes {
 public:
  /// An empty file maps to an empty span. @throws IoError; UsageError (bad_argument) if the path
  /// is no regular file.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  /// The same for a regular file that is open; `path` is only for messages.
  /// @param access mapped or writable.
  static std::shared_ptr<const MappedFile> open(UniqueFd fd, const std::filesystem::path& path,
                                                Access access = Access::mapped);
  /// The same; null, with the descriptor left as it is, if the process may not have a mapping of
  /// that size.
  static std::shared_ptr<const MappedFile> open_if_it_fits(UniqueFd& fd,
                                                           const std::filesystem::path& path,
                                                           Access access);
  ~MappedFile() override;

  void populate(std::uint64_t offset, std::uint64_t length) const override;
  void advise(std::uint64_t offset, std::uint64_t length, Advice advice) const noexcept override;
  /// Bytes of this mapping that are in the process's page tables (Rss in /proc/self/smaps); 0 if
  /// the system does not tell.
  std::uint64_t resident_bytes() const override;

 private:
  MappedFile(Access access, std::filesystem::path path, UniqueFd fd)
      : FileBytes(access, std::move(path), std::move(fd)) {}
  void fill(std::uint64_t, std::uint64_t) const override {}
};

}  // namespace thalia::io
