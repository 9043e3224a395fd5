#include "io/spool.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "io/posix_file.h"

namespace thalia::io {
namespace {

constexpr std::uint64_t kPiece = 1 << 20;

}  // namespace

Spool::Spool(std::uint64_t memory_bytes, std::filesystem::path folder)
    : memory_bytes_(memory_bytes), folder_(std::move(folder)) {}

void Spool::append(ByteSpan bytes) {
  if (!file_ && bytes.size() > memory_bytes_ - std::min(memory_bytes_, size_)) spill();
  if (file_) {
    pwrite_all(file_->fd(), size_, bytes, file_->path());
  } else {
    memory_.insert(memory_.end(), bytes.begin(), bytes.end());
  }
  size_ += bytes.size();
}

void Spool::truncate(std::uint64_t size) {
  assert(size <= size_);
  size_ = size;
  if (!file_) memory_.resize(size);
}

void Spool::read(std::uint64_t offset, std::uint64_t length, const ByteSink& sink) {
  assert(offset <= size_ && length <= size_ - offset);
  if (!file_) return sink(ByteSpan(memory_).subspan(offset, length));
  memory_.resize(kPiece);
  while (length > 0) {
    const MutableByteSpan piece = MutableByteSpan(memory_).first(std::min(length, kPiece));
    pread_all(file_->fd(), offset, piece, file_->path());
    sink(piece);
    offset += piece.size();
    length -= piece.size();
  }
}

// Never committed: the file goes with this object, or with the process.
void Spool::spill() {
  file_.emplace(folder_ / "spool", AtomicFileOptions{.durability = Durability::none});
  pwrite_all(file_->fd(), 0, memory_, file_->path());
  memory_ = {};
}

}  // namespace thalia::io
