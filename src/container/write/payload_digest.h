// CRC-32 and content hash of borrowed payloads, computed piece by piece while a save passes over
// them. docs/format/format.md, "Content hash".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "container/plan/file_plan.h"
#include "integrity/content_hash.h"

namespace thalia::container {

/// The borrowed payloads of a plan, cut into the pieces of the content hash, in file order. Any
/// number of threads may digest different pieces at once.
class PayloadDigest {
 public:
  /// The plan is borrowed. @param file_order of Layout.
  PayloadDigest(FilePlan& plan, std::span<const std::uint32_t> file_order);

  std::size_t piece_count() const noexcept { return pieces_.size(); }
  std::uint64_t length(std::size_t piece) const noexcept { return pieces_[piece].length; }
  /// The first piece that begins at or after an offset of the file, where payloads lie raw.
  std::size_t first_piece(std::uint64_t offset) const noexcept;
  /// Tensors that wait for pieces, in file order.
  std::span<const std::uint32_t> tensors() const noexcept { return tensors_; }

  /// Logical bytes of payloads with known digests that lie in [begin, end) of the file; of
  /// compressed ones their share. What all extents have adds up to what the tensors have.
  std::uint64_t known_bytes(std::uint64_t begin, std::uint64_t end) const noexcept;

  /// Digests a piece, once. @return the tensor whose last piece that was: its digest is in the
  /// plan now.
  std::optional<std::uint32_t> digest(std::size_t piece, integrity::Xxh3& hasher);

  /// Digests the pieces of a tensor that begin in [begin, end) of its logical bytes; none of one
  /// whose digest is known already.
  void digest_from(std::uint32_t tensor, std::uint64_t begin, std::uint64_t end,
                   integrity::Xxh3& hasher);

 private:
  struct Piece {
    std::uint64_t begin;  ///< of the tensor's logical bytes
    std::uint32_t tensor;
    std::uint32_t length;
    std::uint32_t crc32 = 0;
    Digest128 digest{};
  };
  struct Progress {
    std::size_t first_piece;
    std::atomic<std::uint64_t> missing;
  };
  void complete(std::uint32_t tensor, std::size_t first);

  FilePlan& plan_;
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> tensors_;
  std::vector<std::uint32_t> known_;  ///< tensors whose digests are known, in file order
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  std::vector<std::uint32_t> slots_;  ///< by tensor: place in progress_; kNone: waits for nothing
  std::unique_ptr<Progress[]> progress_;  ///< of tensors_
};

}  // namespace thalia::container
