// Bytes [0, file_begin_) are in chunks of memory, all after them in the file; without a file all
// are in memory. The file is started by the first append that would exceed the limit, and appends
// go to it from then on, even after a truncate() made room: so each byte has one place, which
// follows from its position.
//
// Callers append everything first and take it once, from front to back. A full chunk is freed as
// soon as it was taken, so the memory shrinks while the result grows elsewhere.
#include "io/output/spool.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "io/file/posix_file.h"
#include "io/output/temporary_file.h"
#include "thalia/files.h"

namespace thalia::io {
namespace {

// 4 MiB: two huge pages, small beside any limit that callers set.
constexpr std::uint64_t kChunk = 4 << 20;
constexpr std::uint64_t kPiece = 1 << 20;

}  // namespace

Spool::Spool(std::uint64_t memory_bytes, std::filesystem::path folder)
    : memory_bytes_(memory_bytes), folder_(std::move(folder)) {}

void Spool::append(ByteSpan bytes) {
  assert(taken_ == 0);
  // The subtraction cannot wrap, which size_ + bytes.size() could.
  if (!file_ && bytes.size() > memory_bytes_ - std::min(memory_bytes_, size_)) {
    if (folder_.empty()) folder_ = temporary_folder();
    file_ = open_unnamed_file(folder_);
    file_begin_ = size_;
  }
  if (file_) {
    pwrite_all(file_.get(), size_ - file_begin_, bytes, folder_);
    size_ += bytes.size();
    return;
  }
  while (!bytes.empty()) {
    const std::uint64_t at = size_ % kChunk;
    if (at == 0) chunks_.emplace_back(kChunk);
    const ByteSpan part = bytes.first(std::min(bytes.size(), kChunk - at));
    std::ranges::copy(part, chunks_.back().bytes().begin() + static_cast<std::ptrdiff_t>(at));
    bytes = bytes.subspan(part.size());
    size_ += part.size();
  }
}

void Spool::truncate(std::uint64_t size) {
  assert(taken_ == 0 && size <= size_);
  size_ = size;
  // The file keeps what lies after: later appends write over it.
  if (file_) file_begin_ = std::min(file_begin_, size);
  const std::uint64_t in_memory = file_ ? file_begin_ : size;
  while (chunks_.size() > (in_memory + kChunk - 1) / kChunk) chunks_.pop_back();
}

void Spool::take(std::uint64_t length, const ByteSink& sink) {
  assert(length <= size_ - taken_);
  const std::uint64_t in_memory = file_ ? file_begin_ : size_;
  for (const std::uint64_t end = taken_ + length; taken_ < end;) {
    std::uint64_t count = 0;
    if (taken_ < in_memory) {
      AnonymousMemory& chunk = chunks_[taken_ / kChunk];
      const std::uint64_t at = taken_ % kChunk;
      count = std::min({end - taken_, kChunk - at, in_memory - taken_});
      sink(chunk.bytes().subspan(at, count));
      if (at + count == kChunk) chunk = AnonymousMemory();
    } else {
      count = std::min(end - taken_, kPiece);
      piece_.resize(count);
      pread_all(file_.get(), taken_ - file_begin_, piece_, folder_);
      sink(piece_);
    }
    taken_ += count;
  }
}

}  // namespace thalia::io
