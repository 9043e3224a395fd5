// A tensor on its way from the file to its memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "container/stream/plan.h"
#include "format/chunk.h"
#include "thalia/bytes.h"

namespace thalia::container {

/// Internally synchronised: parts may come from several threads, each part once.
class StreamPayload {
 public:
  /// @param out the tensor's logical bytes, borrowed. @param memory what keeps them alive, if they
  /// are not the caller's.
  StreamPayload(const StreamPlan& plan, const StreamTensor& tensor, MutableByteSpan out,
                std::shared_ptr<void> memory);

  /// Where in memory the bytes [begin, end) of the file belong, if all of them are this tensor's
  /// and stand there as they stand in the file; else an empty span.
  MutableByteSpan place_of(std::uint64_t begin, std::uint64_t end) const;

  /// Takes what is this tensor's of a piece of the file, which is sound as far as blocks tell, and
  /// decodes the chunks that are complete with it. A piece read to place_of() is there already.
  /// @throws as decode_stored().
  void accept(std::uint64_t offset, ByteSpan piece);

  /// Notes that one of the tensor's units has been accepted whole. @return true for the last one.
  bool finish_unit() noexcept;
  /// After that. @throws IntegrityError where the tensor's CRC-32 is what is verified, and differs.
  void check_crc();

  /// Notes a block with a part of the tensor that does not have its leaf.
  void doubt(std::uint64_t block);
  std::optional<std::uint64_t> doubted_block() const;
  /// Whether all that came has the digests of verified tables: of the tensor, or, as chunks have
  /// them that could be decoded, of each chunk.
  bool has_digests() const;

  /// What is wrong with the tensor; the first that is noted stays. Null: nothing.
  void fail(std::exception_ptr error);
  std::exception_ptr error() const;

  MutableByteSpan out() const noexcept { return out_; }
  const std::shared_ptr<void>& memory() const noexcept { return memory_; }

 private:
  // A chunk that lies in several pieces.
  struct Split {
    std::vector<std::byte> stored;
    std::uint64_t missing;
  };
  struct PieceCrc {
    std::uint64_t offset;
    std::uint64_t length;
    std::uint32_t crc32;
  };
  void accept_raw(std::uint64_t offset, ByteSpan piece);
  void accept_chunks(std::uint64_t offset, ByteSpan piece);
  void decode(std::size_t chunk, ByteSpan stored) const;

  const StreamTensor& tensor_;
  const std::span<const format::ChunkEntry> chunks_;
  const bool verifies_;
  MutableByteSpan out_;
  std::shared_ptr<void> memory_;
  std::atomic<std::uint32_t> units_left_;
  mutable std::mutex mutex_;
  std::unordered_map<std::size_t, Split> split_;
  std::vector<PieceCrc> crcs_;
  std::optional<std::uint64_t> doubted_block_;
  std::exception_ptr error_;
};

}  // namespace thalia::container
