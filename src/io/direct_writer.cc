#include "io/direct_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "io/posix_error.h"
#include "io/posix_file.h"

namespace thalia::io {

UniqueFd open_direct(int fd) {
  return UniqueFd(
      ::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
}

bool is_in_memory(int fd) noexcept {
  struct statfs status;
  if (::fstatfs(fd, &status) != 0) return false;
  return status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC;
}

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
    : slots_(depth),
      ring_(std::move(ring)),
      direct_fd_(direct_fd),
      fd_(fd),
      path_(std::move(path)) {
  std::vector<MutableByteSpan> spans;
  for (unsigned i = 0; i < depth; ++i) spans.push_back(buffers_.emplace_back(buffer_bytes).bytes());
  registered_ = ring_.register_buffers(spans);
}

DirectWriter::~DirectWriter() = default;

MutableByteSpan DirectWriter::acquire() {
  acquired_ = free_slot();
  return buffers_[acquired_].bytes();
}

std::size_t DirectWriter::free_slot() {
  while (true) {
    const auto free =
        std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.busy; });
    if (free != slots_.end()) return static_cast<std::size_t>(free - slots_.begin());
    reap();
  }
}

void DirectWriter::submit(std::uint64_t offset, std::size_t length) {
  slots_[acquired_] = {offset, buffers_[acquired_].bytes().first(length), true};
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
  const auto written = static_cast<std::size_t>(std::max(completion.result, 0));
  if (written == slot.bytes.size()) return;
  // Short, interrupted, or refused as a direct write: the ordinary way finishes it, or says what is
  // wrong.
  const int error = -completion.result;
  if (completion.result >= 0 || error == EINTR || error == EAGAIN || error == EINVAL ||
      error == EOPNOTSUPP) {
    pwrite_all(fd_, slot.offset + written, slot.bytes.subspan(written), path_);
    return;
  }
  throw_errno("write", path_, slot.offset, error);
}

void DirectWriter::drain() {
  while (ring_.in_flight() > 0) reap();
}

}  // namespace thalia::io
