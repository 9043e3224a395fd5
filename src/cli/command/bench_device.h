// What `thalia bench` holds this library's figures against: the machine's memory and disk without
// it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stop_token>

#include "thalia/bytes.h"

namespace thalia::cli {

/// Memory that starts on a page, as O_DIRECT wants it. Every page was written to.
class PageMemory {
 public:
  explicit PageMemory(std::uint64_t bytes);
  MutableByteSpan bytes() const noexcept { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_;
};

/// Numbers in the shape of trained weights: f32, bell-shaped around 0, sigma 0.02, each different.
/// The same on every machine. bytes.size() is a multiple of 4 KiB.
void fill_with_weights(MutableByteSpan bytes, unsigned threads);

/// Copies on `threads` threads. The sizes are equal, and multiples of 4 KiB.
void copy_memory(ByteSpan from, MutableByteSpan to, unsigned threads);

/// A new folder, removed at the end of the scope with all in it.
class BenchFolder {
 public:
  /// @throws IoError naming `parent`.
  explicit BenchFolder(const std::filesystem::path& parent);
  ~BenchFolder();
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;

  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  /// False where its file system denies O_DIRECT; it is asked once.
  bool allows_direct() const noexcept { return allows_direct_; }
  /// Waits until the disk has nothing left to do. @throws IoError
  void settle() const;
  /// Writes that much through the page cache, and drops it again. @throws IoError
  void touch_free_memory(std::uint64_t bytes) const;

 private:
  std::filesystem::path path_;
  bool allows_direct_ = false;
};

/// A new file of these bytes: past the page cache where `direct`, 16 writes of 1 MiB at a time into
/// reserved space, then fsync. bytes starts on a page and has whole 4 KiB.
/// @throws IoError with the offset; CancelledError.
void write_raw(const std::filesystem::path& path, ByteSpan bytes, bool direct,
               const std::stop_token& stop);
/// Reads a file's first out.size() bytes in the same way. @throws as write_raw().
void read_raw(const std::filesystem::path& path, MutableByteSpan out, bool direct,
              const std::stop_token& stop);

/// Takes a file that is on the disk out of the page cache. @return false where pages of it stay.
/// @throws IoError
bool drop_from_cache(const std::filesystem::path& path);

/// @throws CancelledError where a stop was requested.
void throw_if_stopped(const std::stop_token& stop);

}  // namespace thalia::cli
