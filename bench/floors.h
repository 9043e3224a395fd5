// What the machine can do with the same bytes: the other side of the comparisons.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "thalia/bytes.h"

namespace thalia::bench {

/// Copies into memory that was written to before. The sizes are equal.
void copy(ByteSpan from, MutableByteSpan to);
/// The same with a memcpy of 4 MiB at a time, on up to `threads` threads (0: one a core).
void copy_all(ByteSpan from, MutableByteSpan to, unsigned threads);
/// Reads every byte, eight at a time, on up to `threads` threads (0: one a core).
void read_all(ByteSpan bytes, unsigned threads);
/// Reads one byte of each page, so that it is in the page tables.
void touch_pages(ByteSpan bytes);
/// XXH3-128 of each MiB on up to `threads` threads.
void hash_all(ByteSpan bytes, unsigned threads);

enum class Sync {
  none,           ///< into the page cache
  at_end,         ///< fsync when all is written
  early_and_end,  ///< sync_file_range(WRITE) behind every 8 MiB, then fsync
};
/// Writes a new file with calls of 1 MiB on `threads` threads (0: one a core).
void write_file(const std::filesystem::path& path, ByteSpan bytes, Sync sync, unsigned threads);
/// Reads a file of out.size() bytes or more with calls of 1 MiB on `threads` threads.
void read_file(const std::filesystem::path& path, MutableByteSpan out, unsigned threads);

/// Bytes at a page's start, as O_DIRECT wants them; written to once.
class PageAligned {
 public:
  explicit PageAligned(std::size_t size);
  explicit PageAligned(ByteSpan contents);
  MutableByteSpan bytes() const { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_;
};

/// Writes a new file past the page cache, 16 calls of 1 MiB at a time, then fsync. @throws Skipped
/// where the file system has no O_DIRECT.
void write_file_direct(const std::filesystem::path& path, const PageAligned& memory);
/// Reads the start of a file past the page cache, 16 calls of 1 MiB at a time.
void read_file_direct(const std::filesystem::path& path, const PageAligned& memory);

/// The same over one io_uring, into `out`, which starts on a page. @throws Skipped where that is
/// not to be had.
void read_file_ring(const std::filesystem::path& path, MutableByteSpan out);

/// A file mapped for reading.
class RawMapping {
 public:
  explicit RawMapping(const std::filesystem::path& path);
  ~RawMapping();
  RawMapping(const RawMapping&) = delete;
  RawMapping& operator=(const RawMapping&) = delete;
  ByteSpan bytes() const { return bytes_; }

 private:
  ByteSpan bytes_;
};

/// Puts the file on the disk and its pages out of the page cache, and looks that none is left.
/// Nothing may have it mapped. @throws Skipped where pages stay, as those in memory do.
void drop_from_cache(const std::filesystem::path& path);
/// Leaves that much free memory as the page cache of this folder's file system uses it, touched a
/// moment ago. A virtual machine gives free pages back to its host, and copying into those is ten
/// times as slow: who runs second, in the pages that the first one has left, would seem the faster.
void touch_free_memory(const std::filesystem::path& folder, std::uint64_t bytes);
/// Waits until everything written to that file system is on the disk.
void settle(const std::filesystem::path& folder);

}  // namespace thalia::bench
