// Invariant of a sink: [gathered_from_, at_) has been taken and has not left it, lies in one
// extent, and is in extent_ at the place that it has in the file's extent. A whole extent of the
// payload is put; the payload's first and last bytes, which share their extents with others, go to
// the tail buffer.
#include "container/write/payload_sink.h"

#include <algorithm>
#include <cstring>

namespace thalia::container {

void TailBuffer::keep(std::uint64_t offset, ByteSpan bytes) {
  if (bytes.empty()) return;
  if (bytes.size() <= left_) {
    left_ -= bytes.size();
    image_.add(offset, bytes_.emplace_back(bytes.begin(), bytes.end()));
    return;
  }
  // Beyond the limit, the file is the buffer.
  image_.write_at(offset, bytes);
  image_.add_written(offset, bytes.size());
}

void PayloadSink::append(ByteSpan bytes) {
  const std::uint64_t extent_bytes = extents_.extent_bytes();
  // Extents are too large to be gathered: everything is kept or written through the page cache.
  if (!extents_.can_put()) {
    tail_.keep(at_, bytes);
    at_ += bytes.size();
    gathered_from_ = at_;
    return;
  }
  while (!bytes.empty()) {
    const std::uint64_t into = at_ % extent_bytes;
    const ByteSpan part = bytes.first(std::min<std::uint64_t>(bytes.size(), extent_bytes - into));
    at_ += part.size();
    bytes = bytes.subspan(part.size());
    // A whole extent goes out from the caller's memory, without a copy.
    if (part.size() == extent_bytes) {
      extents_.put(at_ - extent_bytes, part, queue_);
      gathered_from_ = at_;
      continue;
    }
    if (at_ - part.size() == gathered_from_) extent_ = gathering_memory();
    std::memcpy(extent_.data() + into, part.data(), part.size());
    if (at_ % extent_bytes != 0) continue;
    if (gathered_from_ + extent_bytes == at_) {
      extents_.put(gathered_from_, extent_, queue_);
      gathered_from_ = at_;
    } else {  // the extent began before the payload did, so its other bytes are not here
      finish();
    }
  }
}

void PayloadSink::finish() {
  if (gathered_from_ == at_) return;
  const std::uint64_t into = gathered_from_ % extents_.extent_bytes();
  tail_.keep(gathered_from_, extent_.subspan(into, at_ - gathered_from_));
  gathered_from_ = at_;
}

// A buffer of the queue stays the same until it is submitted, which put() does with a whole extent.
MutableByteSpan PayloadSink::gathering_memory() {
  if (alone_ && queue_) return queue_->acquire().first(extents_.extent_bytes());
  if (!own_) own_ = std::make_unique<io::AlignedBuffer>(extents_.extent_bytes());
  return own_->bytes();
}

}  // namespace thalia::container
