// Large extents of a file, several reads in flight, handed out in the order in which they were
// asked for: past the page cache into pinned buffers or the caller's memory, or through it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "io/direct/uring.h"
#include "io/memory/aligned_buffer.h"
#include "thalia/types.h"

namespace thalia::io {

// Reads by threads that wait for them. They keep the queue of a disk busy without io_uring.

/// Externally synchronised: used by one thread. Destroyed with reads in flight, it waits for them.
class ReadPool {
 public:
  /// Starts as many threads as reads may be in flight, or as many as the system allows. @throws
  /// IoError if it allows none.
  explicit ReadPool(unsigned threads);
  ~ReadPool();
  ReadPool(const ReadPool&) = delete;
  ReadPool& operator=(const ReadPool&) = delete;

  void read(int fd, std::uint64_t offset, MutableByteSpan out, std::uint64_t tag);

  struct Completion {
    std::uint64_t tag;
    std::int64_t result;  ///< bytes read, or -errno
  };
  /// Waits for one read to end. At least one is in flight.
  Completion wait();

 private:
  struct Job {
    int fd;
    std::uint64_t offset;
    MutableByteSpan out;
    std::uint64_t tag;
  };
  void work();

  std::mutex mutex_;
  std::condition_variable wanted_;
  std::condition_variable done_;
  std::deque<Job> jobs_;
  std::deque<Completion> completions_;
  bool ending_ = false;
  std::vector<std::jthread> threads_;
};

/// Who waits for direct reads.
enum class ReadMethod { ring, threads };

/// The same file twice, borrowed. `path` is for messages.
struct ReadFile {
  int fd;
  int direct_fd;  ///< of open_direct(); -1: everything goes through the page cache
  std::filesystem::path path;
};

/// Externally synchronised: one a thread. Extents of one file may be read by several DirectReaders.
class DirectReader {
 public:
  /// Where an extent is believed to be.
  enum class Location { disk, page_cache };

  /// @param depth reads in flight, each with a buffer of `buffer_bytes`, a multiple of
  /// kDirectAlignment. @return null if io_uring is asked for and the system has none.
  static std::unique_ptr<DirectReader> create(const ReadFile& file, ReadMethod way, unsigned depth,
                                              std::size_t buffer_bytes);
  /// Waits for what is in flight: no memory is written to afterwards.
  ~DirectReader();

  bool full() const noexcept { return count_ == slots_.size(); }
  bool empty() const noexcept { return count_ == 0; }

  /// Starts to read an extent into a buffer, or notes to read it through the page cache when its
  /// turn comes. Not full(). From the disk, `offset` is a multiple of kDirectAlignment.
  /// @throws IoError.
  void start(std::uint64_t offset, std::size_t length, Location location);
  /// The same into the caller's memory, in use until release(). From the disk, offset and length
  /// are multiples of kDirectAlignment, the address of direct_memory_alignment().
  void start_into(std::uint64_t offset, MutableByteSpan out, Location location);

  /// Waits for the read that was started first. @return its bytes, all of them, valid until
  /// release(). @throws IoError with path and offset; FormatError (truncated) if the file ends
  /// first.
  MutableByteSpan oldest();
  /// Frees that read's buffer. oldest() has returned.
  void release() noexcept;

 private:
  struct Slot {
    std::uint64_t offset = 0;
    MutableByteSpan bytes;
    bool ended = false;
    std::int64_t result = 0;
  };
  DirectReader(const ReadFile& file, std::optional<Uring> ring, unsigned depth,
               std::size_t buffer_bytes);
  std::size_t next_slot() const noexcept { return (first_ + count_) % slots_.size(); }
  bool through_cache(Location location) const noexcept {
    return location == Location::page_cache || file_.direct_fd < 0;
  }
  void note(std::uint64_t offset, MutableByteSpan bytes, Location location);
  void submit(std::uint64_t offset, MutableByteSpan bytes, MutableByteSpan padded, int buffer);
  void reap();

  ReadFile file_;
  std::size_t buffer_bytes_;
  std::optional<AlignedBuffer> memory_;  ///< for direct reads: a buffer a slot
  std::optional<AlignedBuffer> cached_;  ///< for reads through the page cache, one at a time
  std::vector<Slot> slots_;              ///< a circle
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  // One of them, destroyed first: they wait for reads into the memory above.
  std::optional<Uring> ring_;
  std::optional<ReadPool> pool_;
};

}  // namespace thalia::io
