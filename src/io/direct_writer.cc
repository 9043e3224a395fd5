#include "io/direct_writer.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "io/posix_error.h"
#include "io/posix_file.h"

namespace thalia::io {

std::unique_ptr<DirectWriter> DirectWriter::create(int direct_fd, int fd,
                                                   std::filesystem::path path, unsigned depth,
                                                   std::size_t buffer_bytes) {
  auto ring = Uring::create(depth);
  if (!ring) return nullptr;
  return std::unique_ptr<DirectWriter>(
      new DirectWriter(*std::move(ring), direct_fd, fd, std::move(path), depth, buffer_bytes));
}

DirectWriter::DirectWriter(Uring ring, int direct_fd, int fd, std::filesystem::path path,
                           unsigned depth, std::size_t buffer_bytes)
    : memory_(depth * buffer_bytes),
      slots_(depth),
      ring_(std::move(ring)),
      direct_fd_(direct_fd),
      fd_(fd),
      path_(std::move(path)) {
  for (unsigned i = 0; i < depth; ++i)
    buffers_.push_back(memory_.bytes().subspan(i * buffer_bytes, buffer_bytes));
  registered_ = ring_.register_buffers(buffers_);
}

DirectWriter::~DirectWriter() = default;

MutableByteSpan DirectWriter::acquire() {
  acquired_ = free_slot();
  return buffers_[acquired_];
}

std::size_t DirectWriter::free_slot() {
  while (true) {
    const auto free =
        std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.busy; });
    if (free != slots_.end()) return static_cast<std::size_t>(free - slots_.begin());
    reap();
  }
}

void DirectWriter::submit(std::uint64_t offset, ByteSpan part) {
  slots_[acquired_] = {offset, part, true};
  start(acquired_, registered_ ? static_cast<int>(acquired_) : -1);
}

void DirectWriter::submit_borrowed(std::uint64_t offset, ByteSpan bytes) {
  const std::size_t slot = free_slot();
  slots_[slot] = {offset, bytes, true};
  start(slot, -1);
}

void DirectWriter::start(std::size_t slot, int buffer) {
  const int error = ring_.write(direct_fd_, slots_[slot].offset, slots_[slot].bytes, buffer, slot);
  if (error != 0) {
    slots_[slot].busy = false;
    throw_errno("io_uring_submit", path_, slots_[slot].offset, error);
  }
}

void DirectWriter::reap() {
  const Uring::Completion completion = ring_.wait();
  Slot& slot = slots_[completion.tag];
  slot.busy = false;
  finish(slot, completion.result);
}

// Short, interrupted, or refused as a direct write: the ordinary way finishes it, or says what is
// wrong.
void DirectWriter::finish(const Slot& slot, std::int32_t result) {
  const auto written = static_cast<std::size_t>(std::max(result, 0));
  if (written == slot.bytes.size()) return;
  const int error = -result;
  if (result >= 0 || error == EINTR || error == EAGAIN || error == EINVAL || error == EOPNOTSUPP) {
    pwrite_all(fd_, slot.offset + written, slot.bytes.subspan(written), path_);
    return;
  }
  throw_errno("write", path_, slot.offset, error);
}

void DirectWriter::drain() {
  while (ring_.in_flight() > 0) reap();
}

double DirectWriter::write_and_sync(std::uint64_t offset, ByteSpan bytes, bool with_metadata) {
  drain();
  const auto begun = std::chrono::steady_clock::now();
  const int error = ring_.write_then_sync(direct_fd_, offset, bytes, with_metadata, 0);
  if (error != 0) throw_errno("io_uring_submit", path_, offset, error);
  std::int32_t results[2];
  for (int i = 0; i < 2; ++i) {
    const Uring::Completion completion = ring_.wait();
    results[completion.tag] = completion.result;
  }
  const auto& [written, synced] = results;
  finish({offset, bytes, false}, written);
  if (synced == -ECANCELED || synced == -EINTR) {
    sync_file(fd_, with_metadata, path_);
  } else if (synced < 0) {
    throw_errno(with_metadata ? "fsync" : "fdatasync", path_, {}, -synced);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace thalia::io
