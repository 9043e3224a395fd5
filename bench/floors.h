// What the machine can do with the same bytes: the other side of the comparisons.
#pragma once

#include <cstdint>
#include <filesystem>

#include "measure/disk.h"
#include "measure/memory.h"
#include "thalia/types.h"

namespace thalia::bench {

/// Copies into memory that was written to before. The sizes are equal.
void copy(ByteSpan from, MutableByteSpan to);
/// Reads every byte, eight at a time, on up to `threads` threads (0: one a core).
void read_all(ByteSpan bytes, unsigned threads);
/// Reads one byte of each page, so that it is in the page tables.
void touch_pages(ByteSpan bytes);
/// XXH3-128 of each MiB on up to `threads` threads.
void hash_all(ByteSpan bytes, unsigned threads);

enum class Sync {
  none,           ///< into the page cache
  at_end,         ///< fsync when all is written
  early_and_end,  ///< sync_file_range(WRITE) after every 8 MiB, then fsync
};
/// Writes a new file with calls of 1 MiB on `threads` threads (0: one a core).
void write_file(const std::filesystem::path& path, ByteSpan bytes, Sync sync, unsigned threads);
/// Reads a file of out.size() bytes or more with calls of 1 MiB on `threads` threads.
void read_file(const std::filesystem::path& path, MutableByteSpan out, unsigned threads);

/// measure::write_raw() past the page cache. @throws Skipped where the file system has no O_DIRECT.
void write_file_direct(const std::filesystem::path& path, const measure::PageMemory& memory);
/// measure::read_raw() in the same way.
void read_file_direct(const std::filesystem::path& path, const measure::PageMemory& memory);

/// The same over one io_uring, into `out`, which starts on a page. @throws Skipped if that is
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

/// measure::drop_from_cache(). @throws Skipped where pages stay, as those in memory do.
void drop_from_cache(const std::filesystem::path& path);

}  // namespace thalia::bench
