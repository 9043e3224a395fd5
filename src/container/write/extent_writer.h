// Brings a file's image to the disk extent by extent: gathered, hashed while in the cache, written.
// docs/contribute/design.md, "Two ways to the disk".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "container/write/file_pieces.h"
#include "container/write/memory_shares.h"
#include "io/direct/direct_writer.h"
#include "io/system/unique_fd.h"
#include "thalia/options.h"

namespace thalia::container {

/// What one thread writes with: its own queue, or none if extents go through the page cache.
using WriteQueue = std::unique_ptr<io::DirectWriter>;

/// First put() whole extents of payloads that come one after the other; then set_end(); then
/// write() the other extents of the image, on several threads, each with a queue of its own; then
/// finish().
class ExtentWriter {
 public:
  /// The image and the options are borrowed. The bytes of the image's pieces may change until their
  /// extent is written; the first 256 may change until finish(). @param expected_bytes about the
  /// length of the file.
  ExtentWriter(FilePieces& image, std::uint64_t expected_bytes, const SaveOptions& options);

  std::uint64_t extent_bytes() const noexcept { return extent_bytes_; }

  /// False if extents are too large to be gathered in memory, because the blocks of the tree
  /// are.
  bool can_put() const noexcept;
  /// Hashes and writes one extent, which is whole in `bytes`. The caller has `bytes` back on
  /// return. Externally synchronised. @throws IoError.
  void put(std::uint64_t begin, ByteSpan bytes, WriteQueue& queue);
  /// Ends the first part: what write() writes is [0, end) without the extents that were put.
  /// @param block_log2 of the tree, if there is one: what the options or the size say.
  /// @throws IoError.
  void set_end(std::uint64_t end, unsigned block_log2);

  std::uint64_t end() const noexcept { return end_; }
  std::uint64_t extent_count() const noexcept { return (end_ + extent_bytes_ - 1) / extent_bytes_; }

  /// For the extents that are put while payloads come. Null where writes are not direct, and where
  /// memory has no room for two extents.
  WriteQueue make_queue() const { return queue_of(1, shares_.queue); }
  /// For write(): `queues` of all threads together share the depth and the memory. Null as above.
  WriteQueue make_last_queue(unsigned queues) const {
    return queue_of(queues, shares_.last_queues());
  }
  /// Threads that may write() at once: of direct writes, so many as have memory for a queue.
  std::uint64_t most_writers() const noexcept;
  /// Hashes and writes one extent, once, unless it was put. Direct writes may be in flight until
  /// the queue is drained.
  /// @throws IoError.
  void write(std::uint64_t extent, WriteQueue& queue);

  /// The leaves of the block tree; complete when all extents are written. Empty if the options want
  /// none.
  ByteSpan leaves() const noexcept { return trees_.empty() ? ByteSpan() : trees_.front().leaves; }
  IoMode io() const noexcept { return direct_fd_ ? IoMode::direct : IoMode::buffered; }
  /// Why io() is not what was asked for.
  const std::string& io_fallback() const noexcept { return io_fallback_; }

  /// After all extents are written. Writes what the image has from `end` to `length`, the file's
  /// length; then the first page, with the header; then syncs as the options say, linked after it.
  /// @return seconds of the sync; nullopt if the caller still has to sync. @throws IoError.
  std::optional<double> finish(std::uint64_t length);

 private:
  WriteQueue queue_of(unsigned queues, std::uint64_t memory_bytes) const;
  void open_direct();
  bool is_large_and_synced() const noexcept;
  bool direct_pays() const;
  void reserve(std::uint64_t end);
  void reserve_ahead(std::uint64_t end);
  void write_buffered(std::uint64_t begin, std::uint64_t end);
  void write_direct(std::uint64_t begin, std::uint64_t end, io::DirectWriter& queue);
  bool is_direct(ByteSpan memory) const noexcept;
  std::uint64_t fill(std::uint64_t begin, std::uint64_t end, MutableByteSpan out) const;
  void hash(std::uint64_t begin, ByteSpan bytes);

  // The leaves of blocks of one size.
  struct Tree {
    std::uint64_t block_bytes;
    std::vector<std::byte> leaves{};
  };
  static std::vector<Tree> possible_trees(const SaveOptions& options);
  bool is_possible(const Tree& tree, std::uint64_t end) const noexcept;
  MutableByteSpan leaf(Tree& tree, std::uint64_t offset) const;

  FilePieces& image_;
  const std::uint64_t expected_bytes_;
  const SaveOptions& options_;
  const MemoryShares shares_;
  std::vector<Tree> trees_;  ///< of all sizes that the file may come to; one from set_end() on
  const std::uint64_t extent_bytes_;
  const std::uint64_t leaf_bytes_;
  std::uint64_t end_ = 0;
  std::uint64_t reserved_ = 0;
  std::vector<bool> put_;  ///< by extent
  io::UniqueFd direct_fd_;
  std::size_t memory_alignment_ = io::kDirectAlignment;
  std::string io_fallback_;
};

}  // namespace thalia::container
