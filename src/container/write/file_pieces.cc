// Pieces do not overlap and, after sort(), lie in file order; that is what the binary search and
// walk() rely on. The list does not change while threads read it. The bytes that pieces borrow may:
// a header is completed before its extent is written, never while.
#include "container/write/file_pieces.h"

#include <algorithm>
#include <cstring>

#include "container/plan/file_plan.h"
#include "io/file/posix_file.h"

namespace thalia::container {
namespace {

// What was written through the page cache is read back in parts: few calls, and small enough for a
// cache.
constexpr std::uint64_t kReadBackBytes = 256 * 1024;

}  // namespace

void FilePieces::add(std::uint64_t offset, ByteSpan bytes) {
  if (!bytes.empty()) pieces_.push_back({offset, bytes.size(), bytes.data()});
}

void FilePieces::add(std::uint64_t offset, std::span<const ByteSpan> pieces) {
  for (const ByteSpan piece : pieces) {
    add(offset, piece);
    offset += piece.size();
  }
}

void FilePieces::add_written(std::uint64_t offset, std::uint64_t length) {
  if (length == 0) return;
  if (!pieces_.empty() && pieces_.back().bytes == nullptr &&
      pieces_.back().offset + pieces_.back().length == offset) {
    pieces_.back().length += length;
  } else {
    pieces_.push_back({offset, length, nullptr});
  }
}

void FilePieces::sort() {
  std::sort(pieces_.begin(), pieces_.end(),
            [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
}

std::vector<FilePieces::Piece>::const_iterator FilePieces::first_piece(std::uint64_t offset) const {
  return std::partition_point(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
    return piece.offset + piece.length <= offset;
  });
}

// Gaps are handed out as zeros, in parts as long as the block of zeros.
template <typename Visit>
void FilePieces::walk(std::uint64_t begin, std::uint64_t end, Visit visit) const {
  auto piece = first_piece(begin);
  std::uint64_t at = begin;
  while (at < end) {
    const bool in_piece = piece != pieces_.end() && piece->offset <= at;
    if (in_piece) {
      const std::uint64_t skip = at - piece->offset;
      const std::uint64_t length = std::min(piece->length - skip, end - at);
      visit(at, ByteSpan(piece->bytes == nullptr ? nullptr : piece->bytes + skip, length));
      at += length;
      ++piece;
    } else {
      const std::uint64_t gap_end = piece == pieces_.end() ? end : std::min(end, piece->offset);
      const std::uint64_t length = std::min<std::uint64_t>(gap_end - at, zero_bytes().size());
      visit(at, zero_bytes().first(length));
      at += length;
    }
  }
}

void FilePieces::for_each(std::uint64_t begin, std::uint64_t end,
                          const std::function<void(ByteSpan)>& visit) const {
  std::vector<std::byte> buffer;
  walk(begin, end, [&](std::uint64_t at, ByteSpan piece) {
    if (piece.data() != nullptr) return visit(piece);
    buffer.resize(std::min<std::uint64_t>(piece.size(), kReadBackBytes));
    for (std::uint64_t done = 0; done < piece.size();) {
      const MutableByteSpan part = MutableByteSpan(buffer).first(
          std::min<std::uint64_t>(piece.size() - done, buffer.size()));
      io::pread_all(fd_, begin_ + at + done, part, path_);
      visit(part);
      done += part.size();
    }
  });
}

void FilePieces::copy(std::uint64_t begin, std::uint64_t end, MutableByteSpan out) const {
  for_each(begin, end, [&](ByteSpan piece) {
    std::memcpy(out.data(), piece.data(), piece.size());
    out = out.subspan(piece.size());
  });
}

// What lies in one piece can be hashed and written directly without gathering it.
ByteSpan FilePieces::contiguous(std::uint64_t begin, std::uint64_t end) const {
  const auto piece = first_piece(begin);
  if (piece == pieces_.end() || piece->bytes == nullptr || piece->offset > begin ||
      piece->offset + piece->length < end)
    return {};
  return {piece->bytes + (begin - piece->offset), end - begin};
}

bool FilePieces::has_written(std::uint64_t begin, std::uint64_t end) const {
  for (auto piece = first_piece(begin); piece != pieces_.end() && piece->offset < end; ++piece) {
    if (piece->bytes == nullptr) return true;
  }
  return false;
}

void FilePieces::write(std::uint64_t begin, std::uint64_t end) const {
  if (is_in_memory()) return;
  // Neighbouring pieces go out in one call; what is in the file already ends a batch.
  std::vector<ByteSpan> batch;
  std::uint64_t batch_begin = begin;
  const auto flush = [&](std::uint64_t next) {
    if (!batch.empty()) io::pwritev_all(fd_, begin_ + batch_begin, batch, path_);
    batch.clear();
    batch_begin = next;
  };
  walk(begin, end, [&](std::uint64_t at, ByteSpan piece) {
    if (piece.data() == nullptr) {
      flush(at + piece.size());
    } else {
      batch.push_back(piece);
    }
  });
  flush(end);
}

void FilePieces::write_at(std::uint64_t offset, ByteSpan bytes) const {
  if (!is_in_memory()) io::pwrite_all(fd_, begin_ + offset, bytes, path_);
}

void FilePieces::start_writeback(std::uint64_t offset, std::uint64_t length) const noexcept {
  if (!is_in_memory()) io::start_writeback(fd_, begin_ + offset, length);
}

void FilePieces::set_length(std::uint64_t length) const {
  if (!is_in_memory()) io::set_file_size(fd_, begin_ + length, path_);
}

}  // namespace thalia::container
