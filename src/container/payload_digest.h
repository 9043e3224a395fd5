// CRC-32 and content hash of borrowed payloads, computed piece by piece while a save passes over
// them. docs/format.md, "Content hash".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "container/draft.h"
#include "integrity/content_hash.h"

namespace thalia::container {

/// The borrowed payloads of a draft that are not digested yet, cut into the pieces of the content
/// hash, in file order. Any number of threads may digest different pieces at once.
class PayloadDigest {
 public:
  /// The draft is borrowed, and its payloads are placed. @param file_order of Layout.
  PayloadDigest(Draft& draft, std::span<const std::uint32_t> file_order);

  std::size_t piece_count() const noexcept { return pieces_.size(); }
  /// The first piece that begins at or behind an offset of the file.
  std::size_t first_piece(std::uint64_t offset) const noexcept;
  /// Tensors that wait for pieces, in file order.
  std::span<const std::uint32_t> tensors() const noexcept { return tensors_; }

  /// Digests a piece, once. @return the tensor whose last piece that was: its digest is in the
  /// draft now.
  std::optional<std::uint32_t> digest(std::size_t piece, integrity::Xxh3& hasher);

 private:
  struct Piece {
    std::uint64_t offset;  ///< in the file
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

  Draft& draft_;
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> tensors_;
  std::vector<std::uint32_t> slots_;      ///< by tensor: place in progress_
  std::unique_ptr<Progress[]> progress_;  ///< of tensors_
};

/// Digests all of them now, for payloads that do not reach the file as they are.
void digest_all(Draft& draft, unsigned threads);

}  // namespace thalia::container
