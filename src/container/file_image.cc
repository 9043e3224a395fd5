#include "container/file_image.h"

#include <algorithm>
#include <mutex>

#include "base/parallel.h"
#include "container/draft.h"
#include "integrity/block_tree.h"
#include "io/posix_file.h"

namespace thalia::container {
namespace {

// Enough to read back with few calls, small enough for a cache.
constexpr std::uint64_t kReadBackBytes = 256 * 1024;

}  // namespace

void FileImage::add(std::uint64_t offset, ByteSpan bytes) {
  if (!bytes.empty()) runs_.push_back({offset, bytes.size(), bytes.data()});
}

void FileImage::add_written(std::uint64_t offset, std::uint64_t length) {
  if (length != 0) runs_.push_back({offset, length, nullptr});
}

void FileImage::sort() {
  std::sort(runs_.begin(), runs_.end(),
            [](const Run& a, const Run& b) { return a.offset < b.offset; });
}

template <typename Visit>
void FileImage::walk(std::uint64_t begin, std::uint64_t end, Visit visit) const {
  auto run = std::partition_point(runs_.begin(), runs_.end(),
                                  [&](const Run& r) { return r.offset + r.length <= begin; });
  std::uint64_t at = begin;
  while (at < end) {
    const bool in_run = run != runs_.end() && run->offset <= at;
    if (in_run) {
      const std::uint64_t skip = at - run->offset;
      const std::uint64_t length = std::min(run->length - skip, end - at);
      visit(at, ByteSpan(run->bytes == nullptr ? nullptr : run->bytes + skip, length));
      at += length;
      ++run;
    } else {
      const std::uint64_t gap_end = run == runs_.end() ? end : std::min(end, run->offset);
      const std::uint64_t length = std::min<std::uint64_t>(gap_end - at, zero_bytes().size());
      visit(at, zero_bytes().first(length));
      at += length;
    }
  }
}

void FileImage::for_each(std::uint64_t begin, std::uint64_t end,
                         const std::function<void(ByteSpan)>& visit) const {
  std::vector<std::byte> buffer;
  walk(begin, end, [&](std::uint64_t at, ByteSpan piece) {
    if (piece.data() != nullptr) return visit(piece);
    buffer.resize(kReadBackBytes);
    for (std::uint64_t done = 0; done < piece.size();) {
      const MutableByteSpan part = MutableByteSpan(buffer).first(
          std::min<std::uint64_t>(piece.size() - done, kReadBackBytes));
      io::pread_all(fd_, at + done, part, path_);
      visit(part);
      done += part.size();
    }
  });
}

std::vector<std::byte> FileImage::write_blocks(const WriteOptions& options) const {
  const std::uint64_t blocks = (options.end + options.block_bytes - 1) / options.block_bytes;
  const std::uint64_t leaf_bytes = options.want_leaves ? integrity::leaf_length(options.leaves) : 0;
  std::vector<std::byte> leaves(blocks * leaf_bytes);
  std::mutex progress_mutex;
  std::uint64_t done = 0;

  parallel_for(blocks, options.threads, [&](std::size_t block) {
    const std::uint64_t begin = block * options.block_bytes;
    const std::uint64_t end = std::min(begin + options.block_bytes, options.end);
    if (options.want_leaves) {
      integrity::LeafHasher hasher(options.leaves);
      for_each(begin, end, [&](ByteSpan piece) { hasher.update(piece); });
      hasher.finish(MutableByteSpan(leaves).subspan(block * leaf_bytes, leaf_bytes));
    }
    // Neighbouring pieces go out in one call; what is in the file already ends a batch.
    std::vector<ByteSpan> batch;
    std::uint64_t batch_begin = std::max<std::uint64_t>(begin, sizeof(format::Header));
    const auto flush = [&](std::uint64_t next) {
      if (!batch.empty()) io::pwritev_all(fd_, batch_begin, batch, path_);
      batch.clear();
      batch_begin = next;
    };
    walk(batch_begin, std::max(end, batch_begin), [&](std::uint64_t at, ByteSpan piece) {
      if (piece.data() == nullptr) {
        flush(at + piece.size());
      } else {
        batch.push_back(piece);
      }
    });
    flush(end);
    if (options.progress) {
      const std::lock_guard lock(progress_mutex);
      done += end - begin;
      options.progress(done, options.end);
    }
  });
  return leaves;
}

}  // namespace thalia::container
