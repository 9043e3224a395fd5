#include "io/uring.h"

#include <liburing.h>
#include <sys/uio.h>

#include <cerrno>
#include <utility>
#include <vector>

namespace thalia::io {

void Uring::Close::operator()(io_uring* ring) const noexcept {
  io_uring_queue_exit(ring);
  delete ring;
}

Uring::Uring(std::unique_ptr<io_uring, Close> ring) : ring_(std::move(ring)) {}

Uring::Uring(Uring&& other) noexcept
    : ring_(std::move(other.ring_)), in_flight_(std::exchange(other.in_flight_, 0)) {}

Uring::~Uring() {
  while (ring_ && in_flight_ > 0) wait();
}

std::optional<Uring> Uring::create(unsigned entries) {
  auto ring = std::make_unique<io_uring>();
  if (io_uring_queue_init(entries, ring.get(), 0) != 0) return std::nullopt;
  return Uring(std::unique_ptr<io_uring, Close>(ring.release()));
}

bool Uring::register_buffers(std::span<const MutableByteSpan> buffers) {
  std::vector<iovec> vectors;
  vectors.reserve(buffers.size());
  for (const MutableByteSpan buffer : buffers) vectors.push_back({buffer.data(), buffer.size()});
  return io_uring_register_buffers(ring_.get(), vectors.data(),
                                   static_cast<unsigned>(vectors.size())) == 0;
}

int Uring::write(int fd, std::uint64_t offset, ByteSpan bytes, int buffer, std::uint64_t tag) {
  io_uring_sqe* entry = io_uring_get_sqe(ring_.get());
  if (entry == nullptr) return EBUSY;
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
  if (entry == nullptr) return EBUSY;
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
  int submitted;
  do {
    submitted = io_uring_submit(ring_.get());
  } while (submitted == -EINTR || submitted == -EAGAIN);
  if (submitted < 0) return -submitted;
  in_flight_ += operations;
  return 0;
}

Uring::Completion Uring::wait() {
  io_uring_cqe* entry = nullptr;
  // Whatever interrupts the wait, the operation itself ends: its memory is in use until then.
  while (io_uring_wait_cqe(ring_.get(), &entry) != 0) {
  }
  const Completion completion{io_uring_cqe_get_data64(entry), entry->res};
  io_uring_cqe_seen(ring_.get(), entry);
  --in_flight_;
  return completion;
}

}  // namespace thalia::io
