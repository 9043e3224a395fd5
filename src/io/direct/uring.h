// One io_uring instance: submit and reap reads and writes. Knows nothing of checkpoints. The only
// place that includes liburing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "thalia/types.h"

struct io_uring;

namespace thalia::io {

/// Externally synchronised: one ring a thread. Destroyed with operations in flight, it waits for
/// them, because they use memory that is not its own.
class Uring {
 public:
  /// nullopt if the kernel has no io_uring or denies it (ENOSYS, EPERM, EACCES), or lacks the
  /// memory for it.
  static std::optional<Uring> create(unsigned entries);
  Uring(Uring&&) noexcept;
  Uring& operator=(Uring&&) = delete;
  ~Uring();

  /// Pins a buffer at its first use, so that transfers with it map no pages, and memory that is
  /// never used is never made. @param number below `entries`, the same for the same buffer.
  /// @return `number` for write() and read(), or -1 where the kernel or the limit on locked memory
  /// forbids it.
  int pin(unsigned number, MutableByteSpan bytes);

  /// Hands one write to the kernel. `buffer` is the number of the pinned buffer that holds
  /// `bytes`, or -1. No more than `entries` may be in flight. @return 0, or the errno of a failed
  /// submission: the write is then not in flight, and the ring takes no more operations.
  int write(int fd, std::uint64_t offset, ByteSpan bytes, int buffer, std::uint64_t tag);
  /// The same for one read into `out`.
  int read(int fd, std::uint64_t offset, MutableByteSpan out, int buffer, std::uint64_t tag);

  /// Hands over a write and, linked after it, an fsync (fdatasync without metadata): the kernel
  /// starts it when the write has ended whole, and cancels it (ECANCELED) otherwise. Two of the
  /// `entries`; their tags are `tag` and `tag + 1`. @return as write(), but where the kernel took
  /// the write alone, in_flight() counts that.
  int write_then_sync(int fd, std::uint64_t offset, ByteSpan bytes, bool with_metadata,
                      std::uint64_t tag);

  struct Completion {
    std::uint64_t tag;
    std::int32_t result;  ///< bytes read or written, 0 of a sync, or -errno
  };
  /// Waits for one operation to end, even where the kernel refuses to wait. At least one is in
  /// flight. Operations of any kind may end cancelled, interrupted or short, without a reason in
  /// the file or the disk: the caller finishes them the ordinary way.
  Completion wait();
  unsigned in_flight() const noexcept { return in_flight_; }

 private:
  struct Close {
    void operator()(io_uring* ring) const noexcept;
  };
  Uring(std::unique_ptr<io_uring, Close> ring, unsigned entries);
  int submit(unsigned operations);

  std::unique_ptr<io_uring, Close> ring_;
  enum class Pin : std::uint8_t { untried, pinned, denied };
  std::vector<Pin> pins_;     ///< by number
  bool has_numbers_ = false;  ///< the kernel has been told how many buffers there may be
  unsigned in_flight_ = 0;
  int broken_ = 0;  ///< errno of the submission that failed
};

}  // namespace thalia::io
