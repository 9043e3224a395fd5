// Large aligned extents to a file past the page cache: pinned buffers, several writes in flight
// over io_uring.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "io/direct/uring.h"
#include "io/memory/aligned_buffer.h"
#include "thalia/types.h"

namespace thalia::io {

/// Externally synchronised: one a thread. Extents of one file may be written by several
/// DirectWriters.
class DirectWriter {
 public:
  /// @param direct_fd of open_direct(), @param fd the file's ordinary descriptor, for what a
  /// direct write leaves over; both borrowed. @return null if the system has no io_uring, or no
  /// memory for its buffers.
  static std::unique_ptr<DirectWriter> create(int direct_fd, int fd, std::filesystem::path path,
                                              unsigned depth, std::size_t buffer_bytes);
  /// Waits for what is in flight; errors of it are lost, so call drain() first.
  ~DirectWriter();

  /// A buffer to fill: the same one until it is given to submit(), or submit_borrowed() is called.
  /// Waits for a write to end if none is free.
  /// @throws IoError of a write that ended.
  MutableByteSpan acquire();
  /// Writes a part of the buffer that acquire() gave; offset, length, and where the part lies in
  /// the buffer are multiples of kDirectAlignment.
  void submit(std::uint64_t offset, ByteSpan part);
  /// Writes the caller's memory in place; offset and length are multiples of kDirectAlignment, the
  /// address of direct_memory_alignment(). The memory is in use until drain().
  void submit_borrowed(std::uint64_t offset, ByteSpan bytes);
  /// Waits for everything. @throws IoError with the offset of the first write that failed.
  void drain();
  /// Drains, writes as submit_borrowed() does, and syncs the file, linked so that no time passes
  /// between the two. @return seconds for both. @throws IoError.
  double write_and_sync(std::uint64_t offset, ByteSpan bytes, bool with_metadata);

 private:
  struct Slot {
    std::uint64_t offset = 0;
    ByteSpan bytes;
    bool busy = false;
  };
  DirectWriter(Uring ring, int direct_fd, int fd, std::filesystem::path path, unsigned depth,
               std::size_t buffer_bytes);
  void start(std::size_t slot, int buffer);
  void reap();
  bool finish(const Slot& slot, std::int32_t result);  ///< true: there was something to finish
  std::size_t free_slot();

  AlignedBuffer memory_;
  std::vector<MutableByteSpan> buffers_;
  std::vector<Slot> slots_;  ///< slot i uses buffer i, unless the memory is borrowed
  Uring ring_;               ///< destroyed first: it waits for writes that use the buffers
  int direct_fd_;
  int fd_;
  std::filesystem::path path_;
  std::size_t acquired_ = 0;
};

}  // namespace thalia::io
