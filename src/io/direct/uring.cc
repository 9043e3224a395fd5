// in_flight_ counts what the kernel has taken and not yet completed. As long as it is not 0, the
// kernel may write to memory of the callers, so the destructor waits. The kernel gets each
// operation at once: nothing is left in the submission queue between two calls, unless a submission
// failed. Then broken_ keeps its error and nothing is submitted any more.
//
// A ring that cannot be made, or that breaks, is never an error for the user. The callers then read
// and write in the ordinary way.
#include "io/direct/uring.h"

#include <liburing.h>
#include <sys/uio.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace thalia::io {
namespace {

// The kernel may be out of memory for a moment (EAGAIN), but must not hold us for ever.
constexpr unsigned kSubmissionTries = 100;
// Between two looks at the completion queue where the kernel refuses to wait.
constexpr std::chrono::milliseconds kLookInterval{1};

}  // namespace

void Uring::Close::operator()(io_uring* ring) const noexcept {
  io_uring_queue_exit(ring);
  delete ring;
}

Uring::Uring(std::unique_ptr<io_uring, Close> ring, unsigned entries)
    : ring_(std::move(ring)), pins_(entries) {}

Uring::Uring(Uring&& other) noexcept
    : ring_(std::move(other.ring_)),
      pins_(std::move(other.pins_)),
      has_numbers_(other.has_numbers_),
      in_flight_(std::exchange(other.in_flight_, 0)),
      broken_(other.broken_) {}

Uring::~Uring() {
  while (ring_ && in_flight_ > 0) wait();
}

std::optional<Uring> Uring::create(unsigned entries) {
  auto ring = std::make_unique<io_uring>();
  if (io_uring_queue_init(entries, ring.get(), 0) != 0) return std::nullopt;
  return Uring(std::unique_ptr<io_uring, Close>(ring.release()), entries);
}

// Pinning makes the pages, which takes as long as writing them; so each buffer is pinned when it is
// first used. Kernels before 5.19 cannot do that, and map pages each time.
int Uring::pin(unsigned number, MutableByteSpan bytes) {
  Pin& pin = pins_[number];
  if (pin == Pin::untried) {
    pin = Pin::denied;
    if (!has_numbers_) {
      const auto count = static_cast<unsigned>(pins_.size());
      if (io_uring_register_buffers_sparse(ring_.get(), count) != 0) {
        pins_.assign(count, Pin::denied);
        return -1;
      }
      has_numbers_ = true;
    }
    const iovec vector{bytes.data(), bytes.size()};
    const __u64 tag = 0;
    if (io_uring_register_buffers_update_tag(ring_.get(), number, &vector, &tag, 1) == 1)
      pin = Pin::pinned;
  }
  return pin == Pin::pinned ? static_cast<int>(number) : -1;
}

int Uring::write(int fd, std::uint64_t offset, ByteSpan bytes, int buffer, std::uint64_t tag) {
  io_uring_sqe* entry = io_uring_get_sqe(ring_.get());
  if (entry == nullptr) return broken_ != 0 ? broken_ : EBUSY;
  // The kernel takes 32 bits of length, and ends a longer write short: the caller writes the rest.
  const auto length = static_cast<unsigned>(bytes.size());
  if (buffer >= 0) {
    io_uring_prep_write_fixed(entry, fd, bytes.data(), length, offset, buffer);
  } else {
    io_uring_prep_write(entry, fd, bytes.data(), length, offset);
  }
  io_uring_sqe_set_data64(entry, tag);
  return submit(1);
}

int Uring::read(int fd, std::uint64_t offset, MutableByteSpan out, int buffer, std::uint64_t tag) {
  io_uring_sqe* entry = io_uring_get_sqe(ring_.get());
  if (entry == nullptr) return broken_ != 0 ? broken_ : EBUSY;
  const auto length = static_cast<unsigned>(out.size());
  if (buffer >= 0) {
    io_uring_prep_read_fixed(entry, fd, out.data(), length, offset, buffer);
  } else {
    io_uring_prep_read(entry, fd, out.data(), length, offset);
  }
  io_uring_sqe_set_data64(entry, tag);
  return submit(1);
}

int Uring::write_then_sync(int fd, std::uint64_t offset, ByteSpan bytes, bool with_metadata,
                           std::uint64_t tag) {
  // Both or none: a write whose sync found no room would lose its link.
  if (io_uring_sq_space_left(ring_.get()) < 2) return EBUSY;
  io_uring_sqe* const write = io_uring_get_sqe(ring_.get());
  io_uring_prep_write(write, fd, bytes.data(), static_cast<unsigned>(bytes.size()), offset);
  io_uring_sqe_set_flags(write, IOSQE_IO_LINK);
  io_uring_sqe_set_data64(write, tag);
  io_uring_sqe* const sync = io_uring_get_sqe(ring_.get());
  io_uring_prep_fsync(sync, fd, with_metadata ? 0 : IORING_FSYNC_DATASYNC);
  io_uring_sqe_set_data64(sync, tag + 1);
  return submit(2);
}

int Uring::submit(unsigned operations) {
  // A failed submission leaves its operations in the queue. The next one would submit them too,
  // long after the caller has given up on them, so there is no next one.
  if (broken_ != 0) return broken_;
  for (unsigned tries = 0; tries < kSubmissionTries; ++tries) {
    const int submitted = io_uring_submit(ring_.get());
    if (submitted > 0) {
      in_flight_ += static_cast<unsigned>(submitted);
      // The kernel may take the write of a linked pair and not its sync.
      if (static_cast<unsigned>(submitted) == operations) return 0;
      break;
    }
    if (submitted != 0 && submitted != -EINTR && submitted != -EAGAIN) return broken_ = -submitted;
  }
  return broken_ = EAGAIN;
}

Uring::Completion Uring::wait() {
  io_uring_cqe* entry = nullptr;
  int error;
  do {
    error = io_uring_wait_cqes(ring_.get(), &entry, 1, nullptr, nullptr);
  } while (error == -EINTR);
  // If the kernel does not let us wait, the operations go on all the same, in memory that is not
  // ours. We look every millisecond until one has ended.
  while (error != 0 && io_uring_peek_cqe(ring_.get(), &entry) != 0)
    std::this_thread::sleep_for(kLookInterval);
  const Completion completion{io_uring_cqe_get_data64(entry), entry->res};
  io_uring_cqe_seen(ring_.get(), entry);
  --in_flight_;
  return completion;
}

}  // namespace thalia::io
