#include "container/image_writer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/fail.h"
#include "base/parallel.h"
#include "format/extent.h"
#include "integrity/block_tree.h"
#include "io/direct_writer.h"
#include "io/posix_file.h"

namespace thalia::container {
namespace {

// What a thread takes at a time: large enough for the disk, small enough for a cache.
constexpr std::uint64_t kExtentBytes = 1 << 20;
// Below this a save is over before a queue pays.
constexpr std::uint64_t kDirectThreshold = 8 << 20;
// Larger blocks of the tree are hashed from memory piece by piece and written through the page
// cache.
constexpr std::uint64_t kLargestDirectExtent = 16 << 20;

class ImageWriter {
 public:
  ImageWriter(const FileImage& image, std::uint64_t end, const SaveOptions& options)
      : image_(image),
        end_(end),
        options_(options),
        tree_(options.checksum == format::ChecksumType::block_tree),
        block_bytes_(tree_ ? 1ull << options.block_log2 : kExtentBytes),
        extent_bytes_(std::max(block_bytes_, kExtentBytes)),
        extents_((end + extent_bytes_ - 1) / extent_bytes_),
        workers_(static_cast<unsigned>(
            std::min<std::uint64_t>(resolve_threads(options.threads), extents_))),
        leaf_bytes_(tree_ ? integrity::leaf_length(options.leaves) : 0) {
    if (tree_) out_.leaves.resize(integrity::block_count(end, options.block_log2) * leaf_bytes_);
  }

  ImageWrite run() {
    open_direct();
    std::atomic<std::uint64_t> next{0};
    parallel_for(workers_, workers_, [&](std::size_t) {
      const auto direct = make_queue();
      for (std::uint64_t extent;
           (extent = next.fetch_add(1, std::memory_order_relaxed)) < extents_;) {
        try {
          write_extent(extent * extent_bytes_, direct.get());
        } catch (...) {
          next.store(extents_, std::memory_order_relaxed);  // the other threads stop too
          throw;
        }
      }
      if (direct) direct->drain();
    });
    return std::move(out_);
  }

 private:
  void open_direct() {
    if (options_.io == IoMode::buffered || (options_.io == IoMode::automatic && !direct_pays()))
      return;
    if (extent_bytes_ > kLargestDirectExtent) {
      out_.io_fallback = "blocks of the tree are larger than 16 MiB";
      return;
    }
    direct_fd_ = io::open_direct(image_.fd());
    if (!direct_fd_) {
      out_.io_fallback = "the file system has no O_DIRECT";
    } else if (!io::Uring::create(1)) {
      out_.io_fallback = "io_uring is not available or denied";
      direct_fd_.reset();
    } else {
      // Direct writes into space that is reserved need no exclusive lock on the file, and a full
      // disk shows now.
      io::reserve_space(image_.fd(), end_, image_.path());
      out_.io = IoMode::direct;
    }
  }

  bool direct_pays() const {
    return options_.durability != Durability::none && end_ >= kDirectThreshold &&
           !io::is_in_memory(image_.fd());
  }

  // Null where extents go through the page cache.
  std::unique_ptr<io::DirectWriter> make_queue() const {
    if (!direct_fd_) return nullptr;
    const std::uint64_t affordable = options_.memory_bytes / workers_ / extent_bytes_;
    const auto depth = static_cast<unsigned>(std::clamp<std::uint64_t>(
        options_.queue_depth / workers_, 2, std::max<std::uint64_t>(affordable, 2)));
    return io::DirectWriter::create(direct_fd_.get(), image_.fd(), image_.path(), depth,
                                    extent_bytes_);
  }

  void write_extent(std::uint64_t begin, io::DirectWriter* direct) {
    stop_if_cancelled(options_.cancel);
    const std::uint64_t end = std::min(begin + extent_bytes_, end_);
    if (direct == nullptr || image_.has_written(begin, end)) {
      write_buffered(begin, end);
    } else if (const ByteSpan memory = image_.contiguous(begin, end); is_direct(memory)) {
      hash(begin, memory);
      direct->submit_borrowed(begin, memory);
    } else {
      const MutableByteSpan buffer = direct->acquire();
      std::uint64_t filled = 0;
      image_.for_each(begin, end, [&](ByteSpan piece) {
        std::memcpy(buffer.data() + filled, piece.data(), piece.size());
        filled += piece.size();
      });
      hash(begin, buffer.first(filled));
      const std::uint64_t padded = format::align_up(filled, io::kDirectAlignment);
      std::memset(buffer.data() + filled, 0, padded - filled);
      direct->submit(begin, padded);
    }
    report(end - begin);
  }

  static bool is_direct(ByteSpan memory) {
    return !memory.empty() && memory.size() % io::kDirectAlignment == 0 &&
           reinterpret_cast<std::uintptr_t>(memory.data()) % io::kDirectAlignment == 0;
  }

  void write_buffered(std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t at = begin; tree_ && at < end; at += block_bytes_) {
      integrity::LeafHasher hasher(options_.leaves);
      image_.for_each(at, std::min(at + block_bytes_, end),
                      [&](ByteSpan piece) { hasher.update(piece); });
      hasher.finish(leaf(at));
    }
    image_.write(begin, end);
    if (options_.durability != Durability::none)
      io::start_writeback(image_.fd(), begin, end - begin);
  }

  void hash(std::uint64_t begin, ByteSpan bytes) {
    for (std::uint64_t at = 0; tree_ && at < bytes.size(); at += block_bytes_) {
      integrity::LeafHasher hasher(options_.leaves);
      hasher.update(bytes.subspan(at, std::min<std::uint64_t>(block_bytes_, bytes.size() - at)));
      hasher.finish(leaf(begin + at));
    }
  }

  MutableByteSpan leaf(std::uint64_t offset) {
    return MutableByteSpan(out_.leaves).subspan(offset / block_bytes_ * leaf_bytes_, leaf_bytes_);
  }

  void report(std::uint64_t bytes) {
    if (!options_.progress) return;
    const std::lock_guard lock(progress_mutex_);
    done_ += bytes;
    options_.progress(done_, end_);
  }

  const FileImage& image_;
  const std::uint64_t end_;
  const SaveOptions& options_;
  const bool tree_;
  const std::uint64_t block_bytes_;
  const std::uint64_t extent_bytes_;
  const std::uint64_t extents_;
  const unsigned workers_;
  const std::uint64_t leaf_bytes_;
  ImageWrite out_;
  io::UniqueFd direct_fd_;
  std::mutex progress_mutex_;
  std::uint64_t done_ = 0;
};

}  // namespace

ImageWrite write_image(const FileImage& image, std::uint64_t end, const SaveOptions& options) {
  return ImageWriter(image, end, options).run();
}

}  // namespace thalia::container
