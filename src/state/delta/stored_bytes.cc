// The stored bytes of one tensor of one file, raw or decoded chunk by chunk. A whole chunk is
// decoded right into the caller's memory; a part of one goes through a few remembered chunks,
// because lists are read by several calls that each take a little.

#include "state/delta/stored_bytes.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/fail.h"
#include "io/memory/allocation_limit.h"

namespace thalia::state {
namespace {

constexpr std::uint64_t kRememberedBytes = 8 << 20;  // of a tensor; one chunk, be it larger
constexpr std::uint64_t kRememberedChunks = 8;

}  // namespace

StoredTensorBytes::StoredTensorBytes(const detail::OpenFile& file, std::uint32_t number,
                                     io::MemoryBudget& budget)
    : file_(file), entry_(file.tensor_entry(number)), budget_(budget) {
  if (entry_.chunk_count != 0) chunks_.emplace(file, entry_);
}

ByteSpan StoredTensorBytes::view(std::uint64_t begin, std::uint64_t length) const {
  const std::uint64_t offset = entry_.stored_offset + begin;
  file_.mapping().read_ahead(offset, length);
  return file_.verified_payload(entry_, offset, length);
}

ByteSpan StoredTensorBytes::part(std::uint64_t begin, std::uint64_t length,
                                 std::vector<std::byte>& buffer) const {
  return is_raw() && length != 0 ? view(begin, length) : PartwiseBytes::part(begin, length, buffer);
}

void StoredTensorBytes::read(std::uint64_t begin, MutableByteSpan out) const {
  if (out.empty()) return;
  if (!chunks_) {
    const ByteSpan bytes = view(begin, out.size());
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  while (!out.empty()) {
    const auto chunk = static_cast<std::uint32_t>(begin / chunks_->chunk_bytes());
    const std::uint64_t into = begin % chunks_->chunk_bytes();
    const std::uint64_t length = chunks_->raw_length(chunk);
    const std::uint64_t part = std::min<std::uint64_t>(length - into, out.size());
    Decoded bytes = remembered(chunk);
    if (!bytes && part < length) bytes = decoded(chunk);
    if (bytes) {
      std::memcpy(out.data(), bytes->data() + into, part);
    } else {
      chunks_->decode(chunk, out.first(part));
    }
    begin += part;
    out = out.subspan(part);
  }
}

// Chunks lie one after the other and are alike, so where they are is near enough in proportion.
void StoredTensorBytes::prefetch(std::uint64_t begin, std::uint64_t length) const {
  if (size() == 0) return;
  const double share = static_cast<double>(entry_.stored_length) / static_cast<double>(size());
  const auto place = [&](std::uint64_t at) {
    return std::min<std::uint64_t>(static_cast<std::uint64_t>(static_cast<double>(at) * share),
                                   entry_.stored_length);
  };
  const std::uint64_t from = place(begin), to = place(std::min(begin + length, size()));
  file_.mapping().advise(entry_.stored_offset + from, to - from, io::Advice::will_need);
}

std::uint64_t StoredTensorBytes::most_remembered() const {
  return std::clamp<std::uint64_t>(kRememberedBytes / chunks_->chunk_bytes(), 1, kRememberedChunks);
}

StoredTensorBytes::Decoded StoredTensorBytes::remembered(std::uint32_t chunk) const {
  const std::lock_guard lock(lock_);
  const auto found = std::find_if(remembered_.begin(), remembered_.end(),
                                  [&](const Remembered& one) { return one.chunk == chunk; });
  if (found == remembered_.end()) return nullptr;
  std::rotate(remembered_.begin(), found, found + 1);
  return remembered_.front().bytes;
}

StoredTensorBytes::Decoded StoredTensorBytes::decoded(std::uint32_t chunk) const {
  {
    const std::lock_guard lock(lock_);
    if (!counted_) {
      // Once for as many as are ever remembered.
      budget_.take("payload",
                   std::min<std::uint64_t>(most_remembered() * chunks_->chunk_bytes(), size()));
      counted_ = true;
    }
  }
  const std::uint64_t length = chunks_->raw_length(chunk);
  // Decoded outside the lock: two threads may decode the same chunk, which costs time and nothing
  // else.
  auto bytes = std::make_shared<std::vector<std::byte>>(length);
  chunks_->decode(chunk, *bytes);
  const std::lock_guard lock(lock_);
  if (remembered_.size() >= most_remembered()) remembered_.pop_back();
  remembered_.insert(remembered_.begin(), {chunk, bytes});
  return bytes;
}

}  // namespace thalia::state
