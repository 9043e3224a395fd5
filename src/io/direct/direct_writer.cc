// A slot is busy from start() until its completion is reaped; its memory must not change meanwhile.
// Writes end in any order, which is fine because each has its offset. An error is thrown by
// whichever call reaps it, and by drain() at the latest, so a caller that has drained knows that
// all bytes are with the file system. They are on the disk only after a sync.
#include "io/direct/direct_writer.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/stopwatch.h"
#include "io/file/posix_file.h"
#include "io/system/posix_error.h"

namespace thalia::io {

std::unique_ptr<DirectWriter> DirectWriter::create(int direct_fd, int fd,
                                                   std::filesystem::path path, unsigned depth,
                                                   std::size_t buffer_bytes) {
  auto ring = Uring::create(depth);
  if (!ring) return nullptr;
  try {
    return std::unique_ptr<DirectWriter>(
        new DirectWriter(*std::move(ring), direct_fd, fd, std::move(path), depth, buffer_bytes));
  } catch (const std::bad_alloc&) {
    // Nothing more is to be done here: writing through the page cache is the caller's other way.
    return nullptr;  // the page cache needs no buffers of ours
  }
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
  // Where the limit on locked memory forbids it, writes work all the same and map pages each time.
  start(acquired_, ring_.pin(static_cast<unsigned>(acquired_), buffers_[acquired_]));
}

void DirectWriter::submit_borrowed(std::uint64_t offset, ByteSpan bytes) {
  const std::size_t slot = free_slot();
  slots_[slot] = {offset, bytes, true};
  // The caller's memory is not among the pinned buffers.
  start(slot, -1);
}

void DirectWriter::start(std::size_t slot, int buffer) {
  const int error = ring_.write(direct_fd_, slots_[slot].offset, slots_[slot].bytes, buffer, slot);
  if (error == 0) return;
  // The kernel did not take it, so it never completes: it is written here and now.
  slots_[slot].busy = false;
  finish(slots_[slot], -error);
}

void DirectWriter::reap() {
  const Uring::Completion completion = ring_.wait();
  Slot& slot = slots_[completion.tag];
  // Before finish(), which may throw: the slot is free either way.
  slot.busy = false;
  finish(slot, completion.result);
}

bool DirectWriter::finish(const Slot& slot, std::int32_t result) {
  const auto written = static_cast<std::size_t>(std::max(result, 0));
  if (written == slot.bytes.size()) return false;
  // Short, cancelled, interrupted or refused as a direct write: the ordinary descriptor writes the
  // rest, or says what is wrong.
  if (is_final(-result)) throw_errno("write", path_, slot.offset, -result);
  pwrite_all(fd_, slot.offset + written, slot.bytes.subspan(written), path_);
  return true;
}

void DirectWriter::drain() {
  while (ring_.in_flight() > 0) reap();
}

double DirectWriter::write_and_sync(std::uint64_t offset, ByteSpan bytes, bool with_metadata) {
  drain();
  const Stopwatch watch;
  // What it returns does not matter: an operation that the kernel did not take keeps its ECANCELED
  // below, and is then done in the ordinary way.
  ring_.write_then_sync(direct_fd_, offset, bytes, with_metadata, 0);
  std::int32_t results[2] = {-ECANCELED, -ECANCELED};
  while (ring_.in_flight() > 0) {
    const Uring::Completion completion = ring_.wait();
    results[completion.tag] = completion.result;
  }
  const auto& [written, synced] = results;
  const bool finished = finish({offset, bytes, false}, written);
  if (is_final(-synced)) {
    throw_errno(with_metadata ? "fsync" : "fdatasync", path_, {}, -synced);
    // A sync that ended before the rest of the bytes were written does not cover them.
  } else if (finished || synced < 0) {
    sync_file(fd_, with_metadata, path_);
  }
  return watch.seconds();
}

}  // namespace thalia::io
