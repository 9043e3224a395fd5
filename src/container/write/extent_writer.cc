// Each extent is hashed and written exactly once, by put() or by write(). An extent is a multiple
// of every block size of the tree, so each leaf is written by one thread, and leaves need no lock.
// Until set_end() the file's size, and so its block size, may be unknown: then leaves are made for
// every size that is still possible. The first page, with the header, goes last, in finish(): until
// then the file is not a checkpoint. Direct writes are whole pages; what direct I/O cannot do or
// denies goes through the page cache, with the same bytes.
#include "container/write/extent_writer.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>

#include "container/file/block_choice.h"
#include "format/extent.h"
#include "format/header.h"
#include "integrity/block_tree.h"
#include "io/direct/direct_file.h"
#include "io/file/posix_file.h"
#include "thalia/error.h"

namespace thalia::container {
namespace {

// What a thread takes at a time: large enough for the disk, small enough for a cache.
constexpr std::uint64_t kExtentBytes = 1 << 20;
// Below this, a save is over before a queue pays for its setup. Nor does early write-back pay: the
// first page is written once more with the header, and the sync would wait for the disk twice.
constexpr std::uint64_t kSmallFile = 8 << 20;
// Larger blocks of the tree are hashed piece by piece and written through the page cache.
constexpr std::uint64_t kLargestExtent = 16 << 20;
// How far ahead of the writes space is reserved: large, so that there are few calls, and never
// beyond the expected length.
constexpr std::uint64_t kReservedStep = 256 << 20;
// The unit of direct I/O. The header's page, and what follows the last whole page of the image, are
// written last.
constexpr std::uint64_t kPage = io::kDirectAlignment;
// The least depth of a queue: one extent is gathered while another one is being written.
constexpr std::uint64_t kLeastDepth = 2;

}  // namespace

ExtentWriter::ExtentWriter(FilePieces& image, std::uint64_t expected_bytes,
                           const SaveOptions& options)
    : image_(image),
      expected_bytes_(expected_bytes),
      options_(options),
      shares_(options.work),
      trees_(possible_trees(options)),
      extent_bytes_(trees_.empty() ? kExtentBytes
                                   : std::max(trees_.back().block_bytes, kExtentBytes)),
      leaf_bytes_(integrity::leaf_length(options.leaves)) {
  open_direct();
}

std::vector<ExtentWriter::Tree> ExtentWriter::possible_trees(const SaveOptions& options) {
  if (options.checksum != ChecksumType::block_tree) return {};
  if (options.block_log2) return {Tree{1ull << *options.block_log2}};
  std::vector<Tree> trees;
  for (const unsigned log2 : kBlockLog2s) trees.push_back(Tree{1ull << log2});
  return trees;
}

// Whether a file of at least `end` bytes may have this tree. Blocks grow with the file, so the
// small ones drop out as it gets longer.
bool ExtentWriter::is_possible(const Tree& tree, std::uint64_t end) const noexcept {
  return trees_.size() == 1 || tree.block_bytes >= 1ull << block_log2_for(end);
}

void ExtentWriter::open_direct() {
  if (options_.io == IoMode::buffered || (options_.io == IoMode::automatic && !direct_pays()))
    return;
  if (!can_put()) {
    io_fallback_ = "blocks of the tree are larger than 16 MiB";
    return;
  }
  if (shares_.last_queues() < kLeastDepth * extent_bytes_) {
    io_fallback_ = "memory_bytes leaves no room for two blocks of the tree";
    return;
  }
  direct_fd_ = io::open_direct(image_.fd(), io::DirectAccess::write);
  if (!direct_fd_) {
    io_fallback_ = "the file system has no O_DIRECT";
    // Tried once here, so that the fallback is known before a byte is written.
  } else if (!io::Uring::create(1)) {
    io_fallback_ = "io_uring is not available or denied";
    direct_fd_.reset();
  } else {
    memory_alignment_ = io::direct_memory_alignment(direct_fd_.get());
  }
}

// Direct writes into reserved space need no exclusive lock on the file, and a full disk shows
// early.
void ExtentWriter::reserve(std::uint64_t end) {
  if (end <= reserved_) return;
  io::reserve_space(image_.fd(), end, image_.path());
  reserved_ = end;
}

// Without a sync the page cache is the target, and nothing is faster.
bool ExtentWriter::is_large_and_synced() const noexcept {
  return options_.output.durability != Durability::none && expected_bytes_ >= kSmallFile;
}

bool ExtentWriter::direct_pays() const {
  return is_large_and_synced() && !io::is_in_memory(image_.fd());
}

WriteQueue ExtentWriter::queue_of(unsigned queues, std::uint64_t memory_bytes) const {
  const std::uint64_t affordable = memory_bytes / queues / extent_bytes_;
  if (!direct_fd_ || affordable < kLeastDepth) return nullptr;
  const auto depth = static_cast<unsigned>(
      std::clamp<std::uint64_t>(options_.queue_depth / queues, kLeastDepth, affordable));
  return io::DirectWriter::create(direct_fd_.get(), image_.fd(), image_.path(), depth,
                                  extent_bytes_);
}

std::uint64_t ExtentWriter::most_writers() const noexcept {
  if (!direct_fd_) return std::numeric_limits<std::uint64_t>::max();
  return shares_.last_queues() / (kLeastDepth * extent_bytes_);
}

bool ExtentWriter::can_put() const noexcept {
  return extent_bytes_ <= kLargestExtent;
}

// In steps, because the length of a compressed file is not known. A disk without room for a whole
// step may have room for what is needed.
void ExtentWriter::reserve_ahead(std::uint64_t end) {
  if (end <= reserved_) return;
  const std::uint64_t step = std::min(end + kReservedStep, expected_bytes_);
  if (step > end) {
    try {
      return reserve(step);
    } catch (const IoError&) {
    }
  }
  reserve(end);
}

void ExtentWriter::put(std::uint64_t begin, ByteSpan bytes, WriteQueue& queue) {
  const std::uint64_t extent = begin / extent_bytes_;
  if (put_.size() <= extent) put_.resize(extent + 1);
  put_[extent] = true;
  // Anybody who asks the image for these bytes, as the checksum of the whole file does, reads them
  // back.
  image_.add_written(begin, bytes.size());
  for (Tree& tree : trees_) {
    const std::uint64_t leaves = (begin + extent_bytes_) / tree.block_bytes * leaf_bytes_;
    if (is_possible(tree, begin + extent_bytes_) && tree.leaves.size() < leaves)
      tree.leaves.resize(leaves);
  }
  if (queue) {
    reserve_ahead(begin + extent_bytes_);
    // A copy, because `bytes` is free again on return while the write is still in flight; unless
    // they were gathered in this buffer already.
    const MutableByteSpan buffer = queue->acquire();
    if (buffer.data() != bytes.data()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
    hash(begin, buffer);
    queue->submit(begin, buffer);
  } else {
    hash(begin, bytes);
    image_.write_at(begin, bytes);
    // Early write-back keeps the final fsync short.
    if (is_large_and_synced()) image_.start_writeback(begin, bytes.size());
  }
}

void ExtentWriter::set_end(std::uint64_t end, unsigned block_log2) {
  end_ = end;
  put_.resize(extent_count());
  if (!trees_.empty()) {
    const auto chosen = std::find_if(trees_.begin(), trees_.end(), [&](const Tree& tree) {
      return tree.block_bytes == 1ull << block_log2;
    });
    assert(chosen != trees_.end());
    // Now the size of blocks is known; the other trees are dropped.
    std::iter_swap(trees_.begin(), chosen);
    trees_.resize(1);
    trees_.front().leaves.resize(integrity::block_count(end, block_log2) * leaf_bytes_);
  }
  if (direct_fd_ && end < kPage) {
    io_fallback_ = "the file is smaller than a page";
    direct_fd_.reset();
  }
  if (direct_fd_) reserve(end);
}

void ExtentWriter::write(std::uint64_t extent, WriteQueue& queue) {
  if (put_[extent]) return;
  const std::uint64_t begin = extent * extent_bytes_;
  const std::uint64_t end = std::min(begin + extent_bytes_, end_);
  // What is in the file already went through the page cache; a direct write beside it would have to
  // flush that first.
  if (queue && !image_.has_written(begin, end)) {
    write_direct(begin, end, *queue);
  } else {
    write_buffered(begin, end);
  }
}

void ExtentWriter::write_direct(std::uint64_t begin, std::uint64_t end, io::DirectWriter& queue) {
  // Large payloads lie on pages in the file: if they do in memory too, no copy is needed.
  if (const ByteSpan memory = image_.contiguous(begin, end); is_direct(memory)) {
    hash(begin, memory);
    queue.submit_borrowed(begin, memory);
    return;
  }
  const MutableByteSpan buffer = queue.acquire();
  image_.copy(begin, end, buffer);
  hash(begin, buffer.first(end - begin));
  // The hash covers the whole extent; what is left out here is written by finish().
  const std::uint64_t from = std::max(begin, kPage);
  const std::uint64_t to = end == end_ ? end / kPage * kPage : end;
  if (from < to) queue.submit(from, buffer.subspan(from - begin, to - from));
}

bool ExtentWriter::is_direct(ByteSpan memory) const noexcept {
  return !memory.empty() && memory.size() % kPage == 0 &&
         reinterpret_cast<std::uintptr_t>(memory.data()) % memory_alignment_ == 0;
}

// Nothing is gathered here, as a block may be too large for that: pieces are hashed where they lie.
void ExtentWriter::write_buffered(std::uint64_t begin, std::uint64_t end) {
  integrity::LeafHasher hasher(options_.leaves);
  for (Tree& tree : trees_) {
    for (std::uint64_t at = begin; at < end; at += tree.block_bytes) {
      image_.for_each(at, std::min(at + tree.block_bytes, end),
                      [&](ByteSpan piece) { hasher.update(piece); });
      hasher.finish(leaf(tree, at));
    }
  }
  image_.write(begin, end);
  if (is_large_and_synced()) image_.start_writeback(begin, end - begin);
}

void ExtentWriter::hash(std::uint64_t begin, ByteSpan bytes) {
  integrity::LeafHasher hasher(options_.leaves);
  for (Tree& tree : trees_) {
    if (!is_possible(tree, begin + bytes.size())) continue;
    for (std::uint64_t at = 0; at < bytes.size(); at += tree.block_bytes) {
      hasher.update(
          bytes.subspan(at, std::min<std::uint64_t>(tree.block_bytes, bytes.size() - at)));
      hasher.finish(leaf(tree, begin + at));
    }
  }
}

MutableByteSpan ExtentWriter::leaf(Tree& tree, std::uint64_t offset) const {
  return MutableByteSpan(tree.leaves).subspan(offset / tree.block_bytes * leaf_bytes_, leaf_bytes_);
}

std::optional<double> ExtentWriter::finish(std::uint64_t length) {
  if (!direct_fd_) {
    image_.write(end_, length);
    image_.write_at(0, image_.contiguous(0, sizeof(format::Header)));
    return std::nullopt;
  }
  // Whole pages: those after the extents', then the first one, which may be among them.
  const std::uint64_t from = std::max(end_ / kPage * kPage, kPage);
  // The threads' queues are gone. A ring may be denied by now, after direct writes went well.
  const WriteQueue queue = make_last_queue(1);
  if (!queue) {
    io_fallback_ = "there was no ring for the last write";
    direct_fd_.reset();
    image_.write(from, length);
    image_.write(0, kPage);
    io::set_file_size(image_.fd(), length, image_.path());
    return std::nullopt;
  }
  for (std::uint64_t at = from; at < length; at += extent_bytes_) {
    const MutableByteSpan buffer = queue->acquire();
    queue->submit(at, buffer.first(fill(at, std::min(at + extent_bytes_, length), buffer)));
  }
  const io::AlignedBuffer first(kPage);
  fill(0, kPage, first.bytes());
  // Everything else is on its way to the disk before the header is: that order is the commit. Whole
  // pages were written, so the file may be too long.
  queue->drain();
  io::set_file_size(image_.fd(), length, image_.path());
  if (options_.output.durability != Durability::none)
    return queue->write_and_sync(0, first.bytes(), options_.output.durability == Durability::full);
  queue->submit_borrowed(0, first.bytes());
  queue->drain();
  return std::nullopt;
}

// Gathers [begin, end) of the image and zeros up to the page's end. @return bytes of whole pages.
std::uint64_t ExtentWriter::fill(std::uint64_t begin, std::uint64_t end,
                                 MutableByteSpan out) const {
  const std::uint64_t padded = format::align_up(end - begin, kPage);
  image_.copy(begin, end, out);
  std::memset(out.data() + (end - begin), 0, padded - (end - begin));
  return padded;
}

}  // namespace thalia::container
