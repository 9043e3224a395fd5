// A ring of slots: count_ reads from first_ on have been started and not released, and they are
// handed out in that order whatever order they end in. A slot owns the piece of memory_ with its
// number. Reads never fail where they end: the result waits in its slot until oldest() looks at it,
// so an error is thrown for the read that the caller is at, and reads after it may still fill
// their memory.
//
// The destructor's order matters: ring_ and pool_ are the last members, so they go first and wait
// for reads into memory_.
#include "io/direct/direct_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "format/extent.h"
#include "io/file/posix_file.h"
#include "io/system/posix_error.h"

namespace thalia::io {

// A queue of jobs, threads that take from it, a queue of completions; mutex_ guards all three, and
// no pread() runs under it. Anybody who destroys the pool waits for reads that have begun, because
// they write into the caller's memory; reads that have not begun are dropped. threads_ is the last
// member: its threads are joined before what they use goes.

ReadPool::ReadPool(unsigned threads) {
  threads_.reserve(threads);
  try {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    // Fewer threads read more slowly.
    if (threads_.empty()) throw_errno("pthread_create", {}, {}, error.code().value());
  }
}

ReadPool::~ReadPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    jobs_.clear();
  }
  // The threads are joined when threads_ is destroyed, right after this.
  wanted_.notify_all();
}

void ReadPool::read(int fd, std::uint64_t offset, MutableByteSpan out, std::uint64_t tag) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({fd, offset, out, tag});
  }
  wanted_.notify_one();
}

ReadPool::Completion ReadPool::wait() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return !completions_.empty(); });
  const Completion completion = completions_.front();
  completions_.pop_front();
  return completion;
}

void ReadPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    // Woken without a job: the pool is ending.
    if (jobs_.empty()) return;
    const Job job = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    const auto got = retry_interrupted([&] {
      return ::pread(job.fd, job.out.data(), job.out.size(), static_cast<off_t>(job.offset));
    });
    // errno belongs to the thread, so it is passed on by value.
    const std::int64_t result = got < 0 ? -std::int64_t{errno} : std::int64_t{got};
    lock.lock();
    completions_.push_back({job.tag, result});
    done_.notify_one();
  }
}

std::unique_ptr<DirectReader> DirectReader::create(const ReadFile& file, ReadMethod way,
                                                   unsigned depth, std::size_t buffer_bytes) {
  const bool with_ring = file.direct_fd >= 0 && way == ReadMethod::ring;
  std::optional<Uring> ring = with_ring ? Uring::create(depth) : std::nullopt;
  // The caller decides what comes instead: threads, or the page cache.
  if (with_ring && !ring) return nullptr;
  return std::unique_ptr<DirectReader>(
      new DirectReader(file, std::move(ring), depth, buffer_bytes));
}

DirectReader::DirectReader(const ReadFile& file, std::optional<Uring> ring, unsigned depth,
                           std::size_t buffer_bytes)
    : file_(file), buffer_bytes_(buffer_bytes), slots_(depth), ring_(std::move(ring)) {
  // Without a direct descriptor neither buffers nor ring are ever used.
  if (file_.direct_fd < 0) return;
  memory_.emplace(depth * buffer_bytes);
  if (!ring_) pool_.emplace(depth);
}

DirectReader::~DirectReader() = default;

void DirectReader::start(std::uint64_t offset, std::size_t length, Location location) {
  if (through_cache(location)) {
    // One buffer for all such reads is enough: oldest() fills it when the read's turn comes, and
    // the piece is in use until release() only.
    if (!cached_) cached_.emplace(buffer_bytes_);
    return note(offset, cached_->bytes().first(length), location);
  }
  const std::size_t slot = next_slot();
  const MutableByteSpan buffer = memory_->bytes().subspan(slot * buffer_bytes_, buffer_bytes_);
  // A direct read takes whole blocks, so the buffer is filled up to the next one.
  submit(offset, buffer.first(length), buffer.first(format::align_up(length, kDirectAlignment)),
         ring_ ? ring_->pin(static_cast<unsigned>(slot), buffer) : -1);
}

void DirectReader::start_into(std::uint64_t offset, MutableByteSpan out, Location location) {
  if (through_cache(location)) return note(offset, out, location);
  submit(offset, out, out, -1);
}

void DirectReader::note(std::uint64_t offset, MutableByteSpan bytes, Location location) {
  // The disk works while other reads are handed out. The slot counts as ended with 0 bytes, so that
  // oldest() reads all of it.
  if (location == Location::disk) start_readahead(file_.fd, offset, bytes.size());
  slots_[next_slot()] = {.offset = offset, .bytes = bytes, .ended = true};
  ++count_;
}

void DirectReader::submit(std::uint64_t offset, MutableByteSpan bytes, MutableByteSpan padded,
                          int buffer) {
  const std::size_t slot = next_slot();
  slots_[slot] = {.offset = offset, .bytes = bytes};
  if (ring_) {
    const int error = ring_->read(file_.direct_fd, offset, padded, buffer, slot);
    // Not thrown here: oldest() does the read in the ordinary way, or throws.
    if (error != 0)
      slots_[slot] = {.offset = offset, .bytes = bytes, .ended = true, .result = -error};
  } else {
    pool_->read(file_.direct_fd, offset, padded, slot);
  }
  ++count_;
}

void DirectReader::reap() {
  if (ring_) {
    const Uring::Completion completion = ring_->wait();
    slots_[completion.tag].result = completion.result;
    slots_[completion.tag].ended = true;
  } else {
    const ReadPool::Completion completion = pool_->wait();
    slots_[completion.tag].result = completion.result;
    slots_[completion.tag].ended = true;
  }
}

MutableByteSpan DirectReader::oldest() {
  const Slot& slot = slots_[first_];
  while (!slot.ended) reap();
  // A direct read may end short: at the end of the file, above all, or if it was cancelled. The
  // ordinary descriptor reads the rest, or says what is wrong.
  const auto got = static_cast<std::size_t>(std::max<std::int64_t>(slot.result, 0));
  if (got < slot.bytes.size()) {
    const auto error = static_cast<int>(-slot.result);
    if (is_final(error)) throw_errno("read", file_.path, slot.offset, error);
    pread_all(file_.fd, slot.offset + got, slot.bytes.subspan(got), file_.path);
  }
  return slot.bytes;
}

void DirectReader::release() noexcept {
  first_ = (first_ + 1) % slots_.size();
  --count_;
}

}  // namespace thalia::io
