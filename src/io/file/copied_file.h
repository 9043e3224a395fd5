// A regular file's bytes in memory of our own, read piece by piece on their first touch. What
// becomes of the file later, and what its disk refuses, is an error and never a signal.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "io/file/file_bytes.h"
#include "io/system/process.h"

namespace thalia::io {

/// Bytes that are read at once and counted as resident: few enough for a look-up, and enough that
/// the call costs less than the copy.
inline constexpr std::uint64_t kCopiedPiece = 64 << 10;

/// Reserves address space for the whole file; only pieces that were touched cost memory. If the
/// process may not have as much (ulimit -v, or vm.overcommit_memory 2), address space too is taken
/// for what is touched alone; touching more than there is is an IoError then (ENOMEM, mmap).
/// Internally synchronised: each piece is read once, whatever many threads touch it.
class CopiedFile final : public FileBytes {
 public:
  /// @throws IoError; UsageError (bad_argument) if the path is no regular file.
  static std::shared_ptr<const CopiedFile> open(const std::filesystem::path& path);
  /// The same for a regular file that is open; `path` is only for messages.
  static std::shared_ptr<const CopiedFile> open(UniqueFd fd, const std::filesystem::path& path);
  ~CopiedFile() override;

  void populate(std::uint64_t offset, std::uint64_t length) const override { fill(offset, length); }
  void advise(std::uint64_t offset, std::uint64_t length, Advice advice) const noexcept override;
  std::uint64_t resident_bytes() const override { return resident_.load(); }

 private:
  CopiedFile(std::filesystem::path path, UniqueFd fd);
  void fill(std::uint64_t offset, std::uint64_t length) const override;
  // The pieces of `wanted`, a bit each, that group `group` does not have yet.
  void fill_group(std::uint64_t group, unsigned wanted) const;
  // As many bytes as the file has from the first of a group on, and as a group has at most.
  MutableByteSpan group_memory(std::uint64_t group) const noexcept;
  void map_group(std::uint64_t group) const;

  // Pieces are filled under the lock of their group: nothing is written twice, so what was handed
  // out never changes.
  static constexpr unsigned kGroupPieces = 16;
  static constexpr std::uint64_t kGroupBytes = kGroupPieces * kCopiedPiece;
  mutable std::array<ThreadLock, 64> locks_;
  struct Free {
    void operator()(void* memory) const noexcept;
  };
  // One bit a piece, from calloc: zero pages cost nothing until a piece is filled.
  std::unique_ptr<std::atomic<std::uint16_t>[], Free> filled_;
  // Where address space was not reserved: for each group whether it has any. Under its lock.
  std::unique_ptr<bool[]> has_memory_;
  mutable std::atomic<std::uint64_t> mapped_ = 0;
  mutable std::atomic<std::uint64_t> resident_ = 0;
};

}  // namespace thalia::io
